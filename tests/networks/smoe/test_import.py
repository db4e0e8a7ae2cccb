import subprocess
import sys


def test_moestat_does_not_import_torch():
    program = "import sys, moestat, moestat.networks, moestat.networks.smoe; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "torch" not in done.stdout.split()

"""``python -m experiments.verify``."""

from moestat.sweep.run.threads import one_thread

with one_thread():  # before anything imports NumPy
    from experiments.verify.cli import app

    app(prog_name="python -m experiments.verify")

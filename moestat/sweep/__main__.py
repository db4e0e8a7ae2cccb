"""``python -m moestat.sweep``, and the console script ``moestat-sweep``."""

from moestat.sweep.run.signals import stoppable
from moestat.sweep.run.threads import one_thread


def main() -> None:
    """Run the command line, with one computing thread per process."""
    with one_thread():  # before anything imports NumPy
        from moestat.sweep.cli import app

        with stoppable():
            app(prog_name="moestat-sweep")


if __name__ == "__main__":
    main()

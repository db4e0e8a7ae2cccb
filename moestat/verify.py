"""``python -m moestat.verify``, and the console script ``moestat-verify``."""

from moestat.sweep.threads import one_thread


def main() -> None:
    """Run the command line, with one computing thread per process."""
    with one_thread():  # before anything imports NumPy
        from moestat.papers.verify.cli import app

        app(prog_name="moestat-verify")


if __name__ == "__main__":
    main()

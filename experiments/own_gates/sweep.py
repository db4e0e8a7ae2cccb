"""The sweep command, with the members of one's own registered: ``python -m`` this module."""

from experiments.own_gates.members import register

if __name__ in ("__main__", "__mp_main__"):
    # Processes that compute cells import the main module under the second name.
    register()

if __name__ == "__main__":
    from moestat.sweep.__main__ import main

    main()

"""The sweep command, with the members of one's own registered: ``python -m`` this module."""

from experiments.own_gates.members import register

if __name__ == "__main__":
    from moestat.sweep.__main__ import main

    register()
    main()

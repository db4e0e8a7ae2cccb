"""The one kind of error a user of sweeps can mend: a clear line, never a traceback."""


class SweepError(ValueError):
    """A spec, a store or a command that cannot be used as given."""

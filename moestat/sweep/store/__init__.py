"""Where the rows of a sweep live."""

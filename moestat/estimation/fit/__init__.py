"""A fit, from data that have been read to its estimate with standard errors."""

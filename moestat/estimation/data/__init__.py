"""What a fit has read: one record of the data, with names, groups and units."""

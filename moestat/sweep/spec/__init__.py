"""What a sweep is: specs, their tables and limits, the plan of cells."""

"""Trust-region steps in a box: the region, its eigenproblem, decreases, steps across kinks."""

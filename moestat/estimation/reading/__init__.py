"""Reading what people hold: tables of any kind, labels, formulas.  It never writes to its input."""

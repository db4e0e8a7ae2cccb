"""The public calls that fit: each reads its data once, fits and reports."""

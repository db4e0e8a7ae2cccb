"""How functions become compiled loops, and the mathematics they may call."""

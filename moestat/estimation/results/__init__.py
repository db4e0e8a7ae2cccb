"""What a user calls on a fit."""

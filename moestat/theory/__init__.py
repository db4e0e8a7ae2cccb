"""The theorems as checkable objects."""

"""Data sets, readers and weak-label masking."""

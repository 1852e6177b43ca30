"""Multi-label measures."""

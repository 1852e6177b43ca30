"""Forests of decision trees for multi-label, multi-class and binary targets."""

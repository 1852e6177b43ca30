"""The contracts between the parts of a deep forest."""

"""What pages share: one design for every HTML file that Sylvan writes."""

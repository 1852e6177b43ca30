"""User input becomes canonical arrays here, and nowhere else."""

"""Where exact counts meet noise, and nowhere else."""

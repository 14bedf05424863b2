"""Rivals of `htf`, the experiments that compare them, and the commands that run these. For researchers."""

"""Simulated releases: what error to expect of one that is planned, and what error one has that was made."""

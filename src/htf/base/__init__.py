"""Helpers that know nothing of maps or privacy: arguments, numbers, compiled loops, processes."""

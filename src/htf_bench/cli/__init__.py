"""The commands of the bench."""

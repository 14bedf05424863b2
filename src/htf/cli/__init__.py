"""The commands of htf."""

"""Releases and answers as files for other tools, and synthetic points. Public."""

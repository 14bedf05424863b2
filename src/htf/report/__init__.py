"""A report on a release, for an office: one page for a board, one for a lawyer, one for a statistician. Public."""

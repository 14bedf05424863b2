"""Maps for a browser: one file that works without a network, and what a notebook shows. Public."""

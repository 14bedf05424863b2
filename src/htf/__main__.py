"""`python -m htf` is `htf`."""

from htf.cli.main import main

main()

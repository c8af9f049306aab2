"""`python -m catamount`: the `catamount` command."""

from .command import main

main()

"""`python -m calibrant.cli` is the command `calibrant`."""

from calibrant.cli import main

main()

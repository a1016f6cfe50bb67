"""`python -m warmstart`."""

from warmstart.doors.cli import main

main(prog_name="warmstart")

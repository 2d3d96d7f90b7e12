"""`python -m hub`: the same as the command `agenthub`."""

from hub.cli import main

main()

"""The hub: every piece of agenthub that does I/O, one concern a file."""

from typing import Final

__version__: Final = "0.1.0"

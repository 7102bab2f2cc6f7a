"""The command line: parse, call one function, print."""

from phinets.cli.main import main

__all__ = ["main"]

"""`phinets reproduce`: tables and figures of the paper, re-run and compared."""

from phinets.cli.reproduce.command import command

__all__ = ["command"]

"""`phinets reproduce`: tables and figures of the paper, re-run and compared."""

from phinets.cli.reproduce.running import command

__all__ = ["command"]

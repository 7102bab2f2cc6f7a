"""A job array for Slurm: one file that hands each task its part of the work."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phinets.config.errors import UserError

MOST = 1000
"""Tasks of an array; Slurm's own limit is 1001 unless it is set otherwise."""
OURS = ("array", "output", "a", "o")
"""What of sbatch's options the file says itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """A job array."""

    words: Sequence[str]
    """Of `phinets reproduce`: what each task does, but for its part."""
    tasks: int
    logs: Path
    """The folder of the tasks' output; Slurm itself does not make it."""
    sbatch: str = ""
    """Further options of sbatch: --time=8:00:00 --partition=gpu --gpus-per-task=1."""

    def script(self) -> str:
        """The file, to be handed to sbatch."""
        command = shlex.join([sys.executable, "-m", "phinets", "reproduce", *self.words])
        return "\n".join(
            [
                "#!/bin/bash",
                "#SBATCH --job-name=phinets",
                f"#SBATCH --array=0-{self.tasks - 1}",
                f"#SBATCH --output={self.logs}/%A_%a.txt",
                *(f"#SBATCH {option}" for option in _options(self.sbatch)),
                "set -eu",
                f'{command} --part "$SLURM_ARRAY_TASK_ID/{self.tasks}"',
                "",
            ]
        )


def _options(said: str) -> list[str]:
    """The further options one by one, each with its value."""
    try:
        words = shlex.split(said)
    except ValueError as error:
        raise UserError(f"--sbatch is '{said}', whose quotes are not closed ({error}).") from error
    found: list[list[str]] = []
    for word in words:
        if word.startswith("-"):
            found.append([word])
        elif found:
            found[-1].append(word)
        else:
            raise UserError(f"--sbatch begins with '{word}', but must hold options, e.g. \"--time=8:00:00\".")
    for option, *_ in found:
        if option.lstrip("-").partition("=")[0] in OURS:
            raise UserError(f"--sbatch has {option}, which the file says itself. Leave it out.")
    return [shlex.join(option) for option in found]

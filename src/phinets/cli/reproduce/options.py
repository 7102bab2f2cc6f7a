"""The options of `phinets reproduce`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError, require_at_least

EngineName = Literal["local", "ray", "slurm-script"]


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Re-run tables and figures of the paper at a chosen scale, show them beside its numbers, and judge its claims.

    What is done is kept in a store and not done again; who is stopped goes on with the same command.

    Example: phinets reproduce cifar10-ablation --scale pocket --jobs 2
    """

    targets: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Which tables and figures; --list shows all, and `all` means all."""
    scale: str = "pocket"
    """How large everything is: paper (the exact grid; needs GPUs and the data), pocket (the same grid on a small
    encoder, an hour or so a target on two cores), smoke (seconds: does everything work)."""
    seeds: int | None = None
    """How many seeds; unset: as many as the scale has."""
    store: Path = Path("runs/reproduce")
    """The folder of results, one small file each; files of other machines may be copied into its `results`."""
    also: tuple[Path, ...] = ()
    """Further stores whose results count as done; nothing is written there."""
    jobs: int | None = None
    """Pieces of work at a time, each in a process of its own; unset: one for each GPU, else for each core. With
    slurm-script: tasks of the array."""
    threads: int | None = None
    """CPU threads of each; unset: its share of the cores."""
    engine: EngineName = "local"
    """Who works: processes of this machine, a Ray cluster, or a job array of Slurm, for which a file is written."""
    address: str | None = None
    """Of the Ray cluster; unset: one on this machine for the time being."""
    part: str | None = None
    """Only a share of the work: I/N, I from 0 to N − 1. All N together are everything, each piece once."""
    sbatch: str = ""
    """Further options of sbatch for the job array, in one word: "--time=8:00:00 --gpus-per-task=1"."""
    script: Path = Path("reproduce.sbatch")
    """The file to write for Slurm."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Whether a data set that is not there may be fetched from the net."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    retry_failed: bool = False
    """Try again what has failed before."""
    dry_run: bool = False
    """Only say what would be done, and how long it may take."""
    out: Path | None = None
    """A folder for the tables and claims: TARGET.md, TARGET.tex, TABLE.csv."""
    overwrite: bool = False
    """Replace files of --out and --script that are there."""
    list: bool = False
    """Show all targets, with the number of runs and the estimated time of each scale on this machine."""
    json: bool = False
    """Print one JSON document; progress goes to standard error."""

    def __post_init__(self) -> None:
        require_at_least(self, jobs=1, threads=1, seeds=1)
        if self.address is not None and self.engine != "ray":
            raise UserError("--address is of a Ray cluster. Say --engine ray as well, or leave it out.")
        if self.sbatch and self.engine != "slurm-script":
            raise UserError("--sbatch is for a job array. Say --engine slurm-script as well, or leave it out.")
        if self.part is not None and self.engine == "slurm-script":
            raise UserError("--engine slurm-script cuts the work into parts itself. Leave out --part.")


def parse(words: list[str]) -> Reproduce:
    """The options that the words give; what follows --sbatch is its value, though it begins with a dash."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--sbatch":
            joined[-1] = f"--sbatch={word}"
        else:
            joined.append(word)
    return parse_words(Reproduce, "reproduce", joined)

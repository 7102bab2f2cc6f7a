"""The options of `phinets reproduce`, and what they choose: targets, scale, store, resources."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from phinets.cli.command import parse_words
from phinets.config.errors import UserError, require_at_least
from phinets.paper.plan import Target, with_seeds
from phinets.paper.scales import Scale, scale
from phinets.paper.targets import TARGETS, target

if TYPE_CHECKING:
    from phinets.reproduce.execute import Resources
    from phinets.reproduce.store import Store

ALL = "all"
EngineName = Literal["local", "ray", "slurm-script"]


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Re-run tables and figures of the paper at a chosen scale, show them beside its numbers, and check its claims.

    Results are kept in a store. The same command resumes an interrupted run and repeats nothing.

    Example: phinets reproduce cifar10-ablation --scale pocket --jobs 2
    """

    targets: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Which tables and figures; --list shows all, and `all` means all."""
    scale: str = "pocket"
    """How large everything is: paper (the exact grid; needs GPUs and the data), pocket (the same grid on a small
    encoder, an hour or so a target on two cores), smoke (seconds: a check that everything works)."""
    seeds: int | None = None
    """How many seeds; unset: as many as the scale has."""
    store: Path = Path("runs/reproduce")
    """The folder of results, one small file each; files of other machines may be copied into its `results`."""
    extra_store: tuple[Path, ...] = ()
    """Further stores whose results count as done; nothing is written there."""
    jobs: int | None = None
    """Jobs at a time, each in its own process; unset: one for each GPU, else for each core. With slurm-script: tasks of
    the array."""
    threads: int | None = None
    """CPU threads of each job; unset: its share of the cores."""
    engine: EngineName = "local"
    """What runs the jobs: processes of this machine, a Ray cluster, or a Slurm array, for which a script is written."""
    address: str | None = None
    """Of the Ray cluster; unset: a temporary one on this machine."""
    shard: str | None = None
    """Only a share of the jobs: I/N, I from 0 to N − 1. All N together are all jobs, each once."""
    sbatch: str = ""
    """Further options of sbatch for the job array, in one word: "--time=8:00:00 --gpus-per-task=1"."""
    script: Path = Path("reproduce.sbatch")
    """The script to write for Slurm."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Whether a missing data set may be downloaded."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    retry_failed: bool = False
    """Run failed jobs again."""
    dry_run: bool = False
    """Only list the missing jobs, and how long they may take by the stored times. Runs and writes nothing."""
    out: Path | None = None
    """A folder for the tables and claims: TARGET.md, TARGET.tex, TABLE.csv."""
    overwrite: bool = False
    """Replace existing files of --out and --script."""
    list: bool = False
    """Show all targets with the number of jobs at each scale, and their time where the store has times of such jobs."""
    json: bool = False
    """Print one JSON document; progress goes to standard error."""

    def __post_init__(self) -> None:
        require_at_least(self, jobs=1, threads=1, seeds=1)
        if self.address is not None and self.engine != "ray":
            raise UserError("--address is of a Ray cluster. Add --engine ray, or leave it out.")
        if self.sbatch and self.engine != "slurm-script":
            raise UserError("--sbatch is for a job array. Add --engine slurm-script, or leave it out.")
        if self.shard is not None and self.engine == "slurm-script":
            raise UserError("--engine slurm-script gives each task its shard itself. Leave out --shard.")


def parse(words: list[str]) -> Reproduce:
    """The options; the word after --sbatch is its value, though it begins with a dash."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--sbatch":
            joined[-1] = f"--sbatch={word}"
        else:
            joined.append(word)
    return parse_words(Reproduce, "reproduce", joined)


def chosen_targets(names: tuple[str, ...]) -> list[Target]:
    """The named targets, each once."""
    if not names:
        raise UserError(f"no target is given. Name some, or {ALL}: {', '.join(TARGETS)}. --list describes them.")
    return list(TARGETS.values()) if ALL in names else [target(name) for name in dict.fromkeys(names)]


def chosen_scale(options: Reproduce, name: str | None = None) -> Scale:
    """The scale, with --seeds."""
    return with_seeds(scale(name or options.scale), options.seeds)


def chosen_store(options: Reproduce) -> "Store":
    """The store; refuses paths that are no folders."""
    from phinets.reproduce.store import Store

    if options.store.exists() and not options.store.is_dir():
        raise UserError(f"--store '{options.store}' is a file, but results need a folder. Choose another --store.")
    for place in options.extra_store:
        if not place.is_dir():
            raise UserError(f"--extra-store '{place}' is no folder. Name the folder of another --store.")
    return Store(options.store, options.extra_store)


def chosen_resources(options: Reproduce) -> "Resources":
    """Data, device and threads; paths are absolute, since workers may have another directory."""
    from phinets.reproduce.execute import Resources

    root = None if options.root is None else str(Path(options.root).expanduser().absolute())
    return Resources(root=root, download=options.download, device=options.device, threads=options.threads)

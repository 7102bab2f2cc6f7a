"""Where a run begins: a name, a config file, or a run that is there; what commands that train have in common."""

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from phinets.config.errors import UserError
from phinets.config.run import TrainConfig
from phinets.training.run_folder import CONFIG, read_config_of

C = TypeVar("C", bound=TrainConfig)


class Begun(Protocol):
    """The options that say where a run lies."""

    @property
    def out(self) -> Path | None: ...
    @property
    def overwrite(self) -> bool: ...
    @property
    def or_resume(self) -> bool: ...


def looked_ahead(words: list[str], names: tuple[str, ...]) -> dict[str, str]:
    """The values of these options among the words; where a value is missing, the real parser says so."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for name in names:
        parser.add_argument(f"--{name}", nargs="?")
    found = vars(parser.parse_known_args(words)[0])
    return {name: found[name.replace("-", "_")] for name in names if found[name.replace("-", "_")] is not None}


def require_one(starts: Mapping[str, str]) -> None:
    """Refuse two places to start from."""
    if len(starts) > 1:
        raise UserError(f"{' and '.join(f'--{name}' for name in starts)} both say where to start. Use one of them.")


def config_in(kind: type[C], folder: str) -> C:
    """The settings of the run in a folder."""
    if not (Path(folder) / CONFIG).exists():
        raise UserError(f"'{folder}' holds no run to go on with: there is no {CONFIG} in it.")
    return read_config_of(kind, Path(folder) / CONFIG)


def require_place(options: Begun, going_on: Mapping[str, Path | None]) -> None:
    """Refuse words about the folder that contradict each other; `going_on` are the options that name a run's own."""
    if options.or_resume and (options.out is None or options.overwrite):
        raise UserError("--or-resume needs the run folder, --out RUN, and can't --overwrite it.")
    for name, place in going_on.items():
        if place is not None and (options.out is not None or options.overwrite or options.or_resume):
            raise UserError(f"--{name} goes on in the run's own folder: leave out --out, --overwrite and --or-resume.")

"""What is said when a run ends before its end: what happened, what is kept, how to go on."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phinets import team
from phinets.config.errors import StoppedError, UserError
from phinets.config.run import Training
from phinets.engine.checkpoint import checkpoints
from phinets.engine.loop import DivergedError
from phinets.engine.memory import is_out_of_memory
from phinets.experiments.folder import CHECKPOINTS, CONFIG

LOST = re.compile(r"connection (was )?(closed|reset|refused)|broken pipe|gloo|nccl|timed out|peer", re.IGNORECASE)


@contextmanager
def rescued(config: Training, folder: Path) -> Iterator[None]:
    """Turn whatever may end a run from outside into one paragraph with the way on; bugs of ours stay tracebacks."""
    try:
        yield
    except team.ToldElsewhereError:
        raise
    except DivergedError as error:
        raise DivergedError(f"The run has diverged: {error} {kept(folder)} {_gentler(config)}") from error
    except StoppedError as error:
        raise StoppedError(f"{error}. {way_on(folder, config)}", error.exit_code) from None
    except UserError as error:
        raise type(error)(f"{error} {way_on(folder, config)}") from error
    except (MemoryError, RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise UserError(f"{_out_of_memory(config)} {way_on(folder, config)}") from error
        if team.size() > 1 and LOST.search(str(error)):
            raise UserError(f"another process of this run is gone. {way_on(folder, config)}") from error
        raise


def kept(folder: Path) -> str:
    """What is safe."""
    found = checkpoints(folder / CHECKPOINTS)
    return f"Everything up to step {found[-1][0]} is kept." if found else "No checkpoint was made before."


def way_on(folder: Path, config: Training) -> str:
    """What is safe, and the command that goes on from there."""
    if not (folder / CONFIG).exists():
        return ""
    return f"{kept(folder)} Go on with: {resume_command(folder, config)}"


def resume_command(folder: Path, config: Training) -> str:
    """The command that goes on with a run."""
    program = f"torchrun --nproc-per-node {team.size()} -m phinets" if team.size() > 1 else "phinets"
    return f"{program} {config.command} --resume {shlex.quote(str(folder))}"


def _gentler(config: Training) -> str:
    return (
        f"Begin anew with a lower learning rate (--lr {config.optimisation.lr / 4:g}), a longer warm-up "
        "(--warmup-epochs), or --precision fp32."
    )


def _out_of_memory(config: Training) -> str:
    parts = config.compute.accumulate
    return (
        f"there is not enough memory for {config.backbone} with a batch of {config.batch} in {parts} "
        f"part{'s' * (parts > 1)}. Compute the batch in more parts (--accumulate {2 * parts}), use half precision "
        f"(--precision bf16), or begin anew with a smaller batch (--batch {config.batch // 2})."
    )

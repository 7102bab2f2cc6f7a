"""How each kind of work is done: begun, or gone on with where it was cut, and kept with its numbers."""

import json
import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from phinets.config.detection import Pictures
from phinets.config.errors import UserError
from phinets.config.exam import EvalOptions
from phinets.config.result import Result
from phinets.config.run import Compute, TrainConfig
from phinets.config.work import (
    Costing,
    Deriving,
    Pretraining,
    Probing,
    Streaming,
    Transferring,
    Work,
    begins_with,
    key,
)
from phinets.reproduce.metrics import of_costs, of_run, of_statements, of_stream, of_transfer
from phinets.reproduce.store import WORK, Store
from phinets.training.loop import DivergedError
from phinets.training.run_folder import BACKBONES, CHECKPOINTS, CONFIG, ENVIRONMENT

T = TypeVar("T", bound=TrainConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """With what work is done; changes nothing of what comes out."""

    root: str | None = None
    """The folder of all data sets."""
    download: bool = False
    device: str = "auto"
    threads: int | None = None
    """CPU threads of each piece of work."""

    def applied(self, config: T) -> T:
        """The run with these means."""
        compute = Compute(device=self.device, threads=self.threads)
        source = replace(config.source, root=self.root, download=self.download)
        return replace(config, compute=compute, source=source, saving=replace(config.saving, pictures=False))


def do(work: Work, store: Store, means: Means, *, patient: bool = True) -> Result:
    """The result of a piece of work: from the store, or by doing it now. What fails is kept with its reason.

    Where another process is at the same work, a patient one waits for its result; another raises BusyError.
    """
    with store.claimed(key(work), patient):
        known = store.result(key(work))
        if known is None:
            known = _done(work, store, means)
            store.put(known)
        return known


def _done(work: Work, store: Store, means: Means) -> Result:
    """The work done now, or why it can't be."""
    began = perf_counter()
    try:
        return DOING[type(work)](work, store, means)
    except DivergedError as error:
        return Result(work=work, health="diverged", protocol=str(error), seconds=perf_counter() - began)
    except UserError as error:
        return Result(work=work, failed=str(error), seconds=perf_counter() - began)
    except Exception:  # a bug of ours must not take the rest of the grid with it, and must be read later
        return Result(work=work, failed=traceback.format_exc(), seconds=perf_counter() - began)


def _pretrained(work: Pretraining, store: Store, means: Means) -> Result:
    from phinets.runs.trainer import resume, run

    folder, config = store.folder(key(work)), means.applied(work.run)
    record = resume(folder, config) if _begun(folder) else run(config, folder)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)  # the encoder's weights stay, in their own file
    return of_run(work, record)


def _streamed(work: Streaming, store: Store, means: Means) -> Result:
    from phinets.runs.trainer import resume_stream, run_stream

    folder, config = store.folder(key(work)), means.applied(work.run)
    record = resume_stream(folder, config) if _begun(folder) else run_stream(config, folder)
    shutil.rmtree(folder, ignore_errors=True)  # nothing begins with a stream's weights
    return of_stream(work, record)


def _begun(folder: Path, mark: str = CONFIG) -> bool:
    """Whether there is something to go on with; what was cut before its mark was written goes."""
    if (folder / mark).exists():
        return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _probed(work: Probing, store: Store, means: Means) -> Result:
    from phinets.evaluation.feature_sets import examined
    from phinets.evaluation.finetune import paper_probe

    folder = _weights(work, store, means)
    exam = EvalOptions(root=means.root, device=means.device, seed=work.run.seed)
    began = perf_counter()
    shown = examined(folder, exam)
    probed = paper_probe(shown, work.probe)
    base = do(Pretraining(run=work.run), store, means)
    return replace(
        base,
        work=work,
        numbers={**base.numbers, "probe": probed.accuracy},
        curves={},
        protocol=f"{shown.describe()}; {work.probe.describe(probed.batch)}",
        seconds=perf_counter() - began,
    )


def _transferred(work: Transferring, store: Store, means: Means) -> Result:
    from phinets.runs.detect import detect, resume_detection
    from phinets.runs.detect_folder import read_begun

    encoder, folder = _weights(work, store, means), store.folder(key(work))
    compute = replace(work.detection.compute, device=means.device, drawings=False)
    if _begun(folder, ENVIRONMENT):
        record = resume_detection(folder, replace(read_begun(folder).config, compute=compute))
    else:
        pictures = _placed(work.detection.pictures, store, means)
        record = detect(encoder, replace(work.detection, compute=compute, pictures=pictures), folder)
    return of_transfer(work, record, json.loads((folder / ENVIRONMENT).read_text(encoding="utf-8")))


def _placed(pictures: Pictures, store: Store, means: Means) -> Pictures:
    """The pictures where they lie, under the folder of all data; where none are named, those that the package draws."""
    from phinets.data.home import data_root
    from phinets.detection.drawn import drawn_voc

    if not pictures.data:
        return replace(pictures, data=f"voc:{drawn_voc(store.root / WORK)}")
    data, *also = (
        f"voc:{data_root(means.root) / said.removeprefix('voc:')}" for said in (pictures.data, *pictures.also)
    )
    return replace(pictures, data=data, also=tuple(also))


def _costed(work: Costing, store: Store, means: Means) -> Result:
    import torch

    from phinets.runs.cost import PROTOCOL, costs
    from phinets.runtime.devices import pick_device
    from phinets.runtime.environment import environment

    device = pick_device(means.device)
    began = perf_counter()
    found = costs(work.run, work.methods, work.rounds, device)
    made_with = environment(work.run.seed, device, str(torch.get_default_dtype()).removeprefix("torch."))
    return of_costs(work, found, PROTOCOL, perf_counter() - began, made_with)


def _derived(work: Deriving, store: Store, means: Means) -> Result:
    from phinets.dynamics.claims import check_paper

    began = perf_counter()
    findings = check_paper(work.sigma2, work.statements)
    return of_statements(work, findings, perf_counter() - began)


def _weights(work: Probing | Transferring, store: Store, means: Means) -> Path:
    """The run whose weights are needed; made anew where only its result came from elsewhere."""
    first = begins_with(work)
    assert first is not None
    folder, known = store.folder(key(first)), do(first, store, means)
    if known.failed is not None:
        raise UserError(f"the pretraining that it begins with has failed: {known.failed}")
    if known.health == "diverged":
        raise DivergedError(known.protocol)
    if not (folder / BACKBONES["fast"]).exists():
        with store.claimed(key(first), patient=True):
            _pretrained(first, store, means)
    return folder


DOING: Mapping[type[Work], Callable[[Any, Store, Means], Result]] = {
    Pretraining: _pretrained,
    Streaming: _streamed,
    Probing: _probed,
    Transferring: _transferred,
    Costing: _costed,
    Deriving: _derived,
}

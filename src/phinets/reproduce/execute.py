"""How each kind of job runs: started or resumed, and stored with its numbers."""

import json
import shutil
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from phinets.config.detection import ImageOptions
from phinets.config.errors import UserError
from phinets.config.evaluation import EvalOptions
from phinets.config.jobs import ContinualJob, CostJob, DetectionJob, DynamicsJob, Job, PretrainJob, ProbeJob, Result
from phinets.config.run import Compute, TrainConfig
from phinets.reproduce.metrics import continual_result, cost_result, detection_result, dynamics_result, run_result
from phinets.reproduce.store import JOBS, Store
from phinets.training.loop import DivergedError
from phinets.training.run_folder import BACKBONES, CHECKPOINTS, CONFIG, ENVIRONMENT

T = TypeVar("T", bound=TrainConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What jobs run with; changes no result."""

    root: str | None = None
    """The folder of all data sets."""
    download: bool = False
    device: str = "auto"
    threads: int | None = None
    """CPU threads of each job."""

    def apply(self, config: T) -> T:
        """The run with these resources."""
        compute = Compute(device=self.device, threads=self.threads)
        source = replace(config.source, root=self.root, download=self.download)
        return replace(config, compute=compute, source=source, saving=replace(config.saving, pictures=False))


def run_job(job: Job, store: Store, resources: Resources, *, wait: bool = True) -> Result:
    """The result of a job: from the store, or computed now. A failure is stored with its reason.

    Where another process runs the same job, wait for its result, or raise BusyError without `wait`.
    """
    with store.lock(job.key, wait):
        result = store.result(job.key)
        if result is None:
            result = _compute(job, store, resources)
            store.put(result)
        return result


def _compute(job: Job, store: Store, resources: Resources) -> Result:
    start = perf_counter()
    try:
        return RUNNERS[job.kind](job, store, resources)
    except DivergedError as error:
        return Result(job=job, health="diverged", protocol=str(error), seconds=perf_counter() - start)
    except UserError as error:
        return Result(job=job, failed=str(error), seconds=perf_counter() - start)
    except Exception:  # a bug of ours must not end the other jobs, and must be readable later
        return Result(job=job, failed=traceback.format_exc(), seconds=perf_counter() - start)


def _pretrain(job: PretrainJob, store: Store, resources: Resources) -> Result:
    from phinets.runs.trainer import resume, run

    folder, config = store.folder(job.key), resources.apply(job.run)
    record = resume(folder, config) if _can_resume(folder) else run(config, folder)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)  # the encoder's weights stay, in their own file
    return run_result(job, record)


def _continual(job: ContinualJob, store: Store, resources: Resources) -> Result:
    from phinets.runs.trainer import resume_stream, run_stream

    folder, config = store.folder(job.key), resources.apply(job.run)
    record = resume_stream(folder, config) if _can_resume(folder) else run_stream(config, folder)
    shutil.rmtree(folder, ignore_errors=True)  # no job requires a stream's weights
    return continual_result(job, record)


def _can_resume(folder: Path, mark: str = CONFIG) -> bool:
    """Whether the folder holds a run to resume; one that was killed before it wrote its mark is deleted."""
    if (folder / mark).exists():
        return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _probe(job: ProbeJob, store: Store, resources: Resources) -> Result:
    from phinets.evaluation.finetune import paper_probe
    from phinets.evaluation.setup import eval_setup

    folder = _weights(job, store, resources)
    options = EvalOptions(root=resources.root, device=resources.device, seed=job.run.seed)
    start = perf_counter()
    setup = eval_setup(folder, options)
    score = paper_probe(setup, job.probe)
    base = run_job(job.requires, store, resources)
    return replace(
        base,
        job=job,
        numbers={**base.numbers, "probe": score.accuracy},
        curves={},
        protocol=f"{setup.describe()}; {job.probe.describe(score.batch)}",
        seconds=perf_counter() - start,
    )


def _detection(job: DetectionJob, store: Store, resources: Resources) -> Result:
    from phinets.runs.detect import detect, read_start, resume_detection

    encoder, folder = _weights(job, store, resources), store.folder(job.key)
    compute = replace(job.detection.compute, device=resources.device, figures=False)
    if _can_resume(folder, ENVIRONMENT):
        record = resume_detection(folder, replace(read_start(folder).config, compute=compute))
    else:
        pictures = _resolve_pictures(job.detection.images, store, resources)
        record = detect(encoder, replace(job.detection, compute=compute, images=pictures), folder)
    return detection_result(job, record, json.loads((folder / ENVIRONMENT).read_text(encoding="utf-8")))


def _resolve_pictures(pictures: ImageOptions, store: Store, resources: Resources) -> ImageOptions:
    """The pictures under the folder of all data; where none are named, those that the package draws."""
    from phinets.data.locations import data_root
    from phinets.detection.synthetic import synthetic_voc

    if not pictures.data:
        return replace(pictures, data=f"voc:{synthetic_voc(store.root / JOBS)}")
    names = (name.removeprefix("voc:") for name in (pictures.data, *pictures.extra_data))
    data, *extra_data = (f"voc:{data_root(resources.root) / name}" for name in names)
    return replace(pictures, data=data, extra_data=tuple(extra_data))


def _cost(job: CostJob, store: Store, resources: Resources) -> Result:
    from phinets.runs.cost import PROTOCOL, costs
    from phinets.runtime.devices import Precision, pick_device
    from phinets.runtime.environment import environment

    device = pick_device(resources.device)
    start = perf_counter()
    measured_costs = costs(job.run, job.methods, job.rounds, device)
    env = environment(job.run.seed, Precision("fp32", device))
    return cost_result(job, measured_costs, PROTOCOL, perf_counter() - start, env)


def _dynamics(job: DynamicsJob, store: Store, resources: Resources) -> Result:
    from phinets.dynamics.claims import check_paper

    start = perf_counter()
    return dynamics_result(job, check_paper(job.sigma2, job.statements), perf_counter() - start)


def _weights(job: ProbeJob | DetectionJob, store: Store, resources: Resources) -> Path:
    """The run whose weights the job requires; trained again where only its result came from elsewhere."""
    first = job.requires
    folder, result = store.folder(first.key), run_job(first, store, resources)
    if result.failed is not None:
        raise UserError(f"the pretraining that it requires failed: {result.failed}")
    if result.health == "diverged":
        raise DivergedError(result.protocol)
    if not (folder / BACKBONES["fast"]).exists():
        with store.lock(first.key, wait=True):
            _pretrain(first, store, resources)
    return folder


RUNNERS: Mapping[str, Callable[[Any, Store, Resources], Result]] = {
    PretrainJob.kind: _pretrain,
    ContinualJob.kind: _continual,
    ProbeJob.kind: _probe,
    DetectionJob.kind: _detection,
    CostJob.kind: _cost,
    DynamicsJob.kind: _dynamics,
}


def require_data(jobs: Mapping[str, Job], resources: Resources) -> None:
    """Refuse jobs if none of them has its data; where only some lack data, these fail one by one."""
    missing = {name: set(_missing_data(job, resources)) for name, job in jobs.items()}
    if not missing or not all(missing.values()):
        return
    reasons = sorted({reason for reasons in missing.values() for reason in reasons})
    raise UserError(
        f"the data of all {len(jobs)} jobs are missing. {' '.join(reasons)} Data elsewhere: --root DIR or "
        "$PHINETS_DATA; `--scale smoke` needs none."
    )


def _missing_data(job: Job, resources: Resources) -> Iterator[str]:
    """Why a job can't find its data."""
    from phinets.data import DATA
    from phinets.data.locations import data_root

    root = resources.root
    for name in job.data:
        place = data_root(root) / name.removeprefix("voc:")
        if name.startswith("voc:") and not place.is_dir():
            yield f"There are no VOC pictures in '{place}'. Put them there: https://host.robots.ox.ac.uk/pascal/VOC."
        folder = DATA[name].folder if name in DATA else None
        if folder is not None and not folder.path(root).is_dir() and not (resources.download and folder.url):
            yield f"'{folder.name}' is not in '{folder.path(root)}'. {folder.advice(root)}"

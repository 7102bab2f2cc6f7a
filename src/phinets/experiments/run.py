"""One run, from its config to its record."""

from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import torch
from safetensors.torch import save
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.plain import to_plain
from phinets.config.record import RunRecord, Score, Summary
from phinets.config.run import RunConfig
from phinets.data import Split, load
from phinets.engine.checkpoint import save_checkpoint, write_whole
from phinets.engine.device import Precision, pick_device
from phinets.engine.feed import Feed
from phinets.engine.journal import Journal, read_journal
from phinets.engine.loop import DivergedError, Loop, Pace
from phinets.engine.optimisers import build_optimiser
from phinets.engine.schedules import Timetable
from phinets.engine.trackers import open_trackers, require_trackers
from phinets.evaluation.collapse import Health, health
from phinets.experiments.diagnosis import diagnosis
from phinets.experiments.environment import environment
from phinets.experiments.folder import claim, require_free, run_folder, write_config, write_json
from phinets.experiments.judging import Judge
from phinets.experiments.watching import Silent, Watcher
from phinets.methods import Learner, learner
from phinets.reports.curves import save_curves
from phinets.views import random_stream


def run(
    config: RunConfig, out: Path | None = None, *, overwrite: bool = False, watcher: Watcher | None = None
) -> RunRecord:
    """Pretrain as `config` says, judge, and leave everything in the run folder.

    Whatever can be found wrong is found before the folder is made.
    """
    began = perf_counter()
    watcher = watcher or Silent()
    folder = run_folder(out, config.method)
    require_free(folder, overwrite)
    bench = _prepare(config)
    claim(folder, overwrite)
    write_config(folder, config)
    write_json(folder / "env.json", environment(config.seed, bench.device, bench.precision.name))
    watcher.began(folder, config, bench.timetable.total)
    untrained, by_pixels = bench.judge.score(bench.learner.encoder()), bench.judge.pixel_score()
    meter, pace = _train(bench, folder, watcher)
    trained = bench.judge.score(bench.learner.encoder())
    summary = _summary(bench, meter, pace, (trained, untrained, by_pixels), perf_counter() - began)
    return _record(bench, folder, summary)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything a run is made of, checked and ready."""

    config: RunConfig
    device: torch.device
    precision: Precision
    learner: Learner
    feed: Feed
    timetable: Timetable
    judge: Judge


def _prepare(config: RunConfig) -> Bench:
    require_trackers(config.compute.log)
    if config.compute.threads is not None:
        torch.set_num_threads(config.compute.threads)
    device = pick_device(config.compute.device)
    model = _learner(config, device)
    split = load(config.data, config.source)
    feed = _feed(config, split, model, device)
    timetable = Timetable(
        steps_per_epoch=feed.steps_per_epoch,
        epochs=config.epochs,
        warmup_epochs=config.optimisation.warmup_epochs,
        peak_lr=config.peak_lr,
        shape=config.optimisation.schedule,
    )
    judge = Judge(split=split, plan=config.plan, size=config.source.image_size, protocol=config.judging, device=device)
    precision = Precision(config.compute.precision, device)
    return Bench(
        config=config, device=device, precision=precision, learner=model, feed=feed, timetable=timetable, judge=judge
    )


def _learner(config: RunConfig, device: torch.device) -> Learner:
    """The learner with the weights that the seed gives, on its device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(config.seed, "init").initial_seed())
        size = config.source.image_size
        model = learner(config.method, backbone=config.backbone, image_size=size, options=config.learner)
    model = model.to(device)
    if config.compute.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if config.compute.compile:
        for encoder in filter(None, (model.f, model.slow)):
            encoder.compile()
    return model


def _feed(config: RunConfig, split: Split, model: Learner, device: torch.device) -> Feed:
    if config.batch > len(split.train):
        raise UserError(
            f"the batch of {config.batch} is larger than the data: '{config.data}' gives {len(split.train)} training "
            f"images. Use --batch {len(split.train)} or less, or more --train-images."
        )
    return Feed(
        images=split.train.images,
        plan=config.plan,
        anchor=model.anchor,
        batch=config.batch,
        seed=config.seed,
        size=config.source.image_size,
        device=device,
        channels_last=config.compute.channels_last,
    )


def _train(bench: Bench, folder: Path, watcher: Watcher) -> tuple[Health, Pace]:
    optimiser = build_optimiser(bench.learner, bench.config.optimisation)
    checkpoint = folder / "checkpoints" / "last.pt"
    meter = Meter(bench, watcher)
    trackers = open_trackers(bench.config.compute.log, folder, to_plain(bench.config))
    with Journal(folder / "metrics.jsonl", trackers) as journal:
        loop = Loop(
            learner=bench.learner,
            optimiser=optimiser,
            feed=bench.feed,
            timetable=bench.timetable,
            precision=bench.precision,
            journal=journal,
            look=meter.look,
            save=lambda step: save_checkpoint(checkpoint, bench.learner, optimiser, step),
            watcher=watcher,
            every=bench.config.judging.look_every,
        )
        try:
            pace = loop.run()
        except DivergedError as error:
            raise DivergedError(_divergence(str(error), bench.config, checkpoint)) from error
    assert meter.last is not None
    return meter.last, pace


class Meter:
    """Looks at the learner, and says once, clearly, when it has collapsed."""

    def __init__(self, bench: Bench, watcher: Watcher) -> None:
        self.bench = bench
        self.watcher = watcher
        self.last: Health | None = None
        self.said = False

    def look(self, codes: Tensor) -> dict[str, float]:
        """kNN so far and the collapse meter's readings."""
        self.last = found = health(codes)
        if found.verdict == "collapsed" and not self.said:
            self.said = True
            self.watcher.told(diagnosis(self.bench.config, found.verdict, found.spread, found.effective_rank))
        knn = self.bench.judge.live_knn(self.bench.learner.encoder())
        readings = {"spread": found.spread, "effective_rank": found.effective_rank, "dead_share": found.dead_share}
        return readings if knn is None else {"knn": knn, **readings}


def _divergence(what: str, config: RunConfig, checkpoint: Path) -> str:
    kept = (
        f"The last good checkpoint is kept: {checkpoint}." if checkpoint.exists() else "No checkpoint was due before."
    )
    return (
        f"The run has diverged: {what} {kept} Use a lower learning rate (--lr {config.optimisation.lr / 4:g}), a "
        "longer warm-up (--warmup-epochs), or --precision fp32."
    )


def _summary(bench: Bench, meter: Health, pace: Pace, scores: tuple[Score, Score, Score], seconds: float) -> Summary:
    trained, untrained, by_pixels = scores
    return Summary(
        method=bench.config.method,
        backbone=bench.config.backbone,
        data=bench.config.data,
        seed=bench.config.seed,
        steps=bench.timetable.total,
        knn=trained.knn,
        linear=trained.linear,
        knn_untrained=untrained.knn,
        linear_untrained=untrained.linear,
        knn_pixels=by_pixels.knn,
        linear_pixels=by_pixels.linear,
        verdict=meter.verdict,
        spread=meter.spread,
        effective_rank=meter.effective_rank,
        dead_share=meter.dead_share,
        seconds=seconds,
        images_per_second=pace.images_per_second,
        data_wait=pace.data_wait,
        protocol=bench.judge.describe(),
    )


def _record(bench: Bench, folder: Path, summary: Summary) -> RunRecord:
    weights = {name: value.contiguous() for name, value in bench.learner.encoder().state_dict().items()}
    note = {"method": summary.method, "backbone": summary.backbone}
    write_whole(folder / "backbone.safetensors", save(weights, note))
    record = RunRecord(
        folder=str(folder),
        config=bench.config,
        environment=environment(bench.config.seed, bench.device, bench.precision.name),
        summary=summary,
        journal=read_journal(folder / "metrics.jsonl"),
    )
    save_curves(record, folder / "curves.png")
    write_json(folder / "summary.json", to_plain(replace(record.summary)))
    return record

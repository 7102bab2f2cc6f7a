"""One run, from its config to its record."""

from pathlib import Path
from time import perf_counter
from typing import Any

from safetensors.torch import save

from phinets.config.plain import to_plain
from phinets.config.record import RunRecord, Score, Summary
from phinets.config.run import RunConfig
from phinets.engine.checkpoint import save_checkpoint, write_whole
from phinets.engine.journal import Journal, read_journal
from phinets.engine.loop import DivergedError, Loop, Pace
from phinets.engine.optimisers import build_optimiser
from phinets.engine.trackers import open_trackers
from phinets.evaluation.collapse import Health
from phinets.experiments.bench import Bench, set_up
from phinets.experiments.environment import environment
from phinets.experiments.folder import claim, require_free, run_folder, write_config, write_json
from phinets.experiments.meter import Meter
from phinets.experiments.watching import Silent, Watcher
from phinets.reports.curves import curves_png


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
    config = config.resolved
    bench = set_up(config)
    claim(folder, overwrite)
    write_config(folder, config)
    made_with = environment(config.seed, bench.device, bench.precision.name)
    write_json(folder / "env.json", made_with)
    watcher.began(folder, config, bench.timetable.total)
    untrained, by_pixels = bench.judge.score(bench.learner.encoder()), bench.judge.score(None)
    meter, pace = _train(bench, folder, watcher)
    trained = bench.judge.score(bench.learner.encoder())
    summary = _summary(bench, meter, pace, (trained, untrained, by_pixels), perf_counter() - began)
    return _record(bench, folder, summary, made_with)


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
            save=lambda step: save_checkpoint(checkpoint, bench.learner, optimiser, bench.precision, step),
            watcher=watcher,
            every=bench.config.judging.look_every,
        )
        try:
            pace = loop.run()
        except DivergedError as error:
            raise DivergedError(_divergence(str(error), bench.config, checkpoint)) from error
    assert meter.last is not None
    return meter.last, pace


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


def _record(bench: Bench, folder: Path, summary: Summary, made_with: dict[str, Any]) -> RunRecord:
    weights = {name: value.contiguous() for name, value in bench.learner.encoder().state_dict().items()}
    note = {"method": summary.method, "backbone": summary.backbone}
    write_whole(folder / "backbone.safetensors", save(weights, note))
    record = RunRecord(
        folder=str(folder),
        config=bench.config,
        environment=made_with,
        summary=summary,
        journal=read_journal(folder / "metrics.jsonl"),
    )
    write_whole(folder / "curves.png", curves_png(record))
    write_json(folder / "summary.json", to_plain(record.summary))
    return record

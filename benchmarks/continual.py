"""What replay and task-wise evaluation cost beyond the images that they use, in one run.

Steps of the same learner take turns, round after round; a ratio is the median over the rounds of the ratio within a
round. Mixup learns from as many images as finetuning does. Plain replay learns from twice as many, so that it stands
beside finetuning on a batch of that size. An evaluation stands beside the feature extraction of the same images.

    python benchmarks/continual.py                              # split-shapes, resnet-tiny
    python benchmarks/continual.py --method byol --steps 20
"""

import json
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import tyro

from phinets.config.continual import ContinualConfig
from phinets.runs.continual import Continual
from phinets.runs.cost import BenchmarkCase, ratio_of_times, time_rounds
from phinets.runs.recipes import split_shapes
from phinets.training.loop import ReplayBuffer
from phinets.training.schedule import RunSchedule
from phinets.training.step import TrainState, train_step


@dataclass(frozen=True)
class Options:
    """Replay beside finetuning on as many images, and an evaluation beside its features."""

    method: str = "x-phinet/cosine"
    """Which learner."""
    backbone: str = "resnet-tiny"
    """Which encoder."""
    steps: int = 12
    """Steps in a turn."""
    rounds: int = 7
    """How often each takes its turn."""
    json: bool = False
    """Print one JSON document."""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    config = replace(split_shapes(), method=options.method, backbone=options.backbone)
    configs = {
        "finetune": config,
        "finetune, twice the batch": replace(config, batch=2 * config.batch),
        "mixup": replace(config, memory=replace(config.memory, replay="mixup")),
        "plain": replace(config, memory=replace(config.memory, replay="plain")),
    }
    runs = {name: Continual.build(one) for name, one in configs.items()}
    device = runs["finetune"].run_parts.device
    times = time_rounds({name: case_of(one, options.steps) for name, one in runs.items()}, options.rounds, device)
    document = {
        "method": options.method,
        "backbone": options.backbone,
        "seconds_per_step": {name: median(values) / options.steps for name, values in times.items()},
        "mixup_to_finetune": ratio_of_times(times, "mixup", "finetune"),
        "plain_to_finetune_on_as_many_images": ratio_of_times(times, "plain", "finetune, twice the batch"),
        "evaluation": evaluation_cost(runs["finetune"], config, median(times["finetune"]) / options.steps),
    }
    print(json.dumps(document) if options.json else table(document))


def case_of(run: Continual, steps: int) -> BenchmarkCase:
    """Some steps of a run with its replay buffer, from where the last turn left it."""
    run_parts = run.run_parts
    place = iter(range(0, 10**9, steps))

    def go() -> None:
        first = next(place) % (run_parts.schedule.ends[0] - steps)
        learn(run_parts.train_state, run_parts.schedule, run_parts.replay, range(first, first + steps))

    return BenchmarkCase(go, run_parts.train_state.optimizer.zero_grad, lambda: 0)


def learn(train_state: TrainState, schedule: RunSchedule, replay: ReplayBuffer | None, steps: range) -> None:
    """The steps as the loop makes them."""
    for step, batch in zip(steps, schedule.batches(steps.start, steps.stop), strict=True):
        views = batch.views if replay is None else replay.mix(step, 0, batch)
        train_step(train_state, [views], rate=1e-3, peak=1e-3)
        if replay is not None:
            replay.add(step, [batch], schedule.loader_at(step).images)


def evaluation_cost(run: Continual, config: ContinualConfig, step: float) -> dict[str, float]:
    """Seconds of one evaluation, of its features alone, and the share of a task's training that each takes."""
    encoder = run.run_parts.train_state.learner.encoder("fast")
    evaluator, bank = run.evaluator, config.evaluation.final_bank
    whole, features = [], []
    for _ in range(3):
        began = perf_counter()
        evaluator.evaluate(encoder, 3)
        whole.append(perf_counter() - began)
        began = perf_counter()
        for task in run.stream.tasks:
            for images in (task.eval_train.labeled.head(bank), task.test.labeled):
                evaluator.extractor.extract(images, encoder)
        features.append(perf_counter() - began)
    training = run.run_parts.schedule.ends[0] * step
    beyond = median(a - b for a, b in zip(whole, features, strict=True))
    return {
        "seconds": median(whole),
        "features_seconds": median(features),
        "share_of_a_task": median(whole) / training,
        "share_beyond_features": beyond / training,
    }


def table(document: dict[str, Any]) -> str:
    """The same for people."""
    lines = [f"{name:28}{seconds:9.4f} s/step" for name, seconds in document["seconds_per_step"].items()]
    cost = document["evaluation"]
    return "\n".join(
        [
            f"{document['method']}, {document['backbone']}",
            *lines,
            f"mixup: {document['mixup_to_finetune']:.3f} × finetune",
            f"plain: {document['plain_to_finetune_on_as_many_images']:.3f} × finetune on as many images",
            f"evaluation of one encoder: {cost['seconds']:.2f} s, features {cost['features_seconds']:.2f} s; "
            f"{100 * cost['share_of_a_task']:.1f} % of a task's training, {100 * cost['share_beyond_features']:.1f} % "
            "beyond the features",
        ]
    )


if __name__ == "__main__":
    main()

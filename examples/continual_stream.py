"""A continual stream: two tasks one after the other, with mixup replay; accuracy matrix and forgetting.

python examples/continual_stream.py [RUN]
"""

import sys
from dataclasses import replace
from pathlib import Path

from phinets.config.continual import ReadoutOptions, ReplayOptions
from phinets.config.run import DataOptions, EvalConfig
from phinets.runs.recipes import benchmark
from phinets.runs.trainer import run_stream

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/stream")
base = benchmark("split-shapes")
config = replace(
    base,
    batch=16,
    epochs_per_task=2,  # a real run: 8 and more, and the benchmark's own 20,000 images
    stream=replace(base.stream, tasks="2x2"),  # two tasks of two classes
    source=DataOptions(train_images=400, test_images=200),
    memory=ReplayOptions(replay="mixup", buffer=32),
    evaluation=EvalConfig(eval_every=0, online_bank=200, online_queries=100, final_bank=200, num_neighbors=10),
    reading=ReadoutOptions(readouts=("task-knn", "class-knn")),
)
record = run_stream(config, folder)

for matrix in record.summary.readings:
    print(f"{matrix.readout}, {matrix.encoder} encoder")
    for row in matrix.matrix:  # after task t: accuracy on each task, in percent
        print("   ", "  ".join("    –" if value is None else f"{value:5.1f}" for value in row))
    print(f"    average {matrix.average:.1f} %, forgetting {matrix.forgetting_max:.1f} points")

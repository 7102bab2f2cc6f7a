"""From a folder of images to features: pretrain on the folder, load the encoder, find the nearest image.

python examples/folder_to_features.py PHOTOS [RUN]
"""

import sys
from dataclasses import replace
from pathlib import Path

import phinets
from phinets.config.run import DataOptions, EvalConfig
from phinets.runs.recipes import recipe
from phinets.runs.trainer import run

photos = Path(sys.argv[1])
folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path("runs/photos")

config = replace(
    recipe("smoke"),
    data=f"folder:{photos}",
    batch=8,
    epochs=2,  # a real run: 100 and more
    source=DataOptions(image_size=32),  # photographs: 96 or more, and --backbone resnet18
    evaluation=EvalConfig(num_neighbors=3),
)
record = run(config, folder)
print(f"{record.summary.verdict} after {record.summary.steps} steps, in {folder}")

encoder = phinets.load(folder)  # frozen, with its own preprocessing
paths = sorted(path for path in photos.rglob("*") if path.suffix in (".jpg", ".png"))
features = encoder(paths)  # (n, encoder.num_features)
directions = features / features.norm(dim=1, keepdim=True)
cosines = directions @ directions.T
cosines.fill_diagonal_(-1)
for path, nearest in zip(paths[:5], cosines.argmax(1).tolist(), strict=False):
    print(f"{path.name} is most like {paths[nearest].name}")

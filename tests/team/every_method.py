"""Started by torchrun: runs every method of a config file, each into a folder of its name.

torchrun --nproc-per-node 2 tests/team/every_method.py CONFIG OUT
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch

from phinets.config.methods import METHODS
from phinets.engine.distributed import joined
from phinets.experiments.folder import read_config
from phinets.experiments.run import run

if __name__ == "__main__":
    torch.set_num_threads(1)
    config, out = read_config(Path(sys.argv[1])), Path(sys.argv[2])
    with joined():
        for name in METHODS:
            run(replace(config, method=name), out / name.replace("/", "-"))

"""Detectron2's side of the transfer to VOC: two configurations and a script, with places to fill in."""

from collections.abc import Mapping
from importlib.resources import files

BASE, TRAIN = "Base-RCNN-C4-BN.yaml", "train_net.py"


def voc_name(depth: int) -> str:
    """What the configuration for VOC is called."""
    return f"pascal_voc_R_{depth}_C4_24k.yaml"


def texts(depth: int, values: Mapping[str, object]) -> dict[str, str]:
    """The files by name: the detector, its training on VOC with the given values, and the script that runs it."""
    voc = _text("voc.yaml.txt")
    for key, value in values.items():
        voc = voc.replace("{{" + key + "}}", str(value))
    return {BASE: _text("base.yaml.txt"), voc_name(depth): voc, TRAIN: _text("train_net.py.txt")}


def _text(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")

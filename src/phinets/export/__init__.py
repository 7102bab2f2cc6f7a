"""Encoders for other houses: one module a target, each with a `TARGET`."""

from collections.abc import Mapping

TARGETS: Mapping[str, str] = {
    "torchvision": "phinets.export.to_torchvision",
    "timm": "phinets.export.to_timm",
    "safetensors": "phinets.export.to_safetensors",
    "onnx": "phinets.export.to_onnx",
    "detectron2": "phinets.export.to_detectron2",
}
"""Where each target is made; a module is imported when it is asked for."""

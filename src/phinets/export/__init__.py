"""Encoders for other libraries. Each module has `TARGETS`: targets by name."""

from collections.abc import Mapping

TARGET_MODULES: Mapping[str, str] = {
    "torchvision": "phinets.export.weights",
    "timm": "phinets.export.weights",
    "safetensors": "phinets.export.weights",
    "onnx": "phinets.export.onnx",
    "detectron2": "phinets.export.detectron2",
}
"""The module of each target; `find_target` imports it on demand."""

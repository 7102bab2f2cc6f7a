"""An ONNX graph, which runs without torch."""

from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from phinets.config.errors import UserError
from phinets.config.export import ExportOptions
from phinets.export.artifact import Artifact, Source, Target, quote, require_same

INPUT, OUTPUT = "images", "features"
TOLERANCE = 1e-4
"""Largest difference of features between onnxruntime and torch, relative to the largest feature, or to 1."""
USAGE = """\
import numpy as np
import onnxruntime

images = np.zeros((8, 3, {side}, {side}), np.{dtype})  # yours
session = onnxruntime.InferenceSession({file})
features = session.run(["{output}"], {{"{input}": images}})[0]"""
"""The code on the card."""


class WithPreprocessing(nn.Module):
    """An encoder of bytes: uint8 RGB (n, 3, s, s) → (x/255 − mean) / std → feature (n, d)."""

    mean: Tensor
    std: Tensor

    def __init__(self, encoder: nn.Module, source: Source) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("mean", torch.tensor(source.plan.mean)[:, None, None])
        self.register_buffer("std", torch.tensor(source.plan.std)[:, None, None])

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.encoder((images.float() / 255 - self.mean) / self.std)
        return features


def onnx_graph(source: Source, options: ExportOptions, out: Path) -> Artifact:
    """A graph for batches of any size, of normalized floats or of bytes."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        _import(package)
    inside = options.with_preprocessing
    model = WithPreprocessing(source.encoder, source) if inside else source.encoder
    preprocess: Callable[[Tensor], Tensor] = (lambda images: images) if inside else source.normalize
    side, kind = source.size, "uint8, RGB, 0 to 255" if inside else "float32, RGB, normalized as below"
    return Artifact(
        description=f"onnxruntime, opset {options.opset}",
        write=lambda file: file.write(_graph(model, preprocess(source.images(2)), source, options.opset)),
        check=lambda path: require_same(source, _runner(path, preprocess), TOLERANCE),
        usage=USAGE.format(
            side=side, dtype="uint8" if inside else "float32", file=quote(out), input=INPUT, output=OUTPUT
        ),
        notes=(f"Input `{INPUT}`: (n, 3, {side}, {side}), {kind}. Output `{OUTPUT}`: (n, {source.width}) float32.",),
    )


def _graph(model: nn.Module, example: Tensor, source: Source, opset: int) -> bytes:
    """The serialized graph. torch's exporter prints to standard output, which is suppressed."""
    model.eval()
    try:
        with redirect_stdout(StringIO()):
            program: Any = torch.onnx.export(
                model, (example,), dynamo=True, verbose=False, opset_version=opset,
                input_names=[INPUT], output_names=[OUTPUT], dynamic_shapes=({0: torch.export.Dim("batch")},),
            )  # fmt: skip
        graph = program.model_proto
        version = next(each.version for each in graph.opset_import if not each.domain)
        if version == opset:
            _import("onnx").helper.set_model_props(graph, dict(source.metadata))
            serialized: bytes = graph.SerializeToString()
            return serialized
    except Exception as error:  # an exporter may raise anything
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"torch can't express '{source.loaded_encoder.backbone}' in ONNX: {first}. "
            "Use --to safetensors, or torch 2.6 and above."
        ) from error
    raise UserError(f"torch wrote opset {version}, not {opset}: it can't convert to it. Leave out --opset.")


def _runner(path: Path, preprocess: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The features of uint8 images by onnxruntime, with the graph in a file."""
    runtime = _import("onnxruntime")
    try:
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise UserError(f"onnxruntime refuses the graph: {error}. Nothing was written; try another --opset.") from error
    return lambda images: torch.from_numpy(session.run([OUTPUT], {INPUT: preprocess(images).numpy()})[0])


def _import(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise UserError(f'--to onnx needs {package}, which is not installed: pip install "phinets[onnx]".') from None


TARGETS = {"onnx": Target(suffixes=(".onnx",), options=("with_preprocessing", "opset"), prepare=onnx_graph)}

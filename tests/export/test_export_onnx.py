"""ONNX: onnxruntime computes what torch does, whatever the batch."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import phinets
from phinets.backbones import backbone
from phinets.config.errors import UserError
from phinets.config.views import PLANS
from phinets.evaluation.encoders import load_encoder
from phinets.export import onnx as to_onnx
from tests.export.helpers import code_of, exported, images, run_with, said_by

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


def session_of(path: Path) -> Any:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def agree(path: Path, encoder: nn.Module, given: Tensor, seen: Tensor) -> bool:
    """Whether onnxruntime gives for `given` what the encoder gives for `seen`, to 1e-4."""
    found = session_of(path).run(["features"], {"images": given.numpy()})[0]
    with torch.no_grad():
        return bool(np.allclose(found, encoder.eval()(seen).numpy(), rtol=0, atol=1e-4))


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("resnet-tiny", 16),
        pytest.param("resnet18-cifar", 32, marks=pytest.mark.slow),
        pytest.param("resnet18", 64, marks=pytest.mark.slow),
        pytest.param("timm:test_vit", 160, marks=pytest.mark.slow),
    ],
)
def test_onnxruntime_gives_torch_s_features_for_batches_of_any_size(
    name: str, side: int, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.startswith("timm:"):
        pytest.importorskip("timm")
    encoder = run_with(name, run_folder, tmp_path / "run", side)
    proof = exported(tmp_path / "run", "onnx", tmp_path / "w.onnx")
    for n in (1, 5):
        assert agree(tmp_path / "w.onnx", encoder, images(n, side), images(n, side))
    assert 0 <= proof.difference <= 1e-4
    assert [path.name for path in tmp_path.glob("w.onnx*")] == ["w.onnx", "w.onnx.md"]  # no weights elsewhere
    graph = onnx.load(tmp_path / "w.onnx")
    assert [each.version for each in graph.opset_import if not each.domain] == [18]
    assert {each.key: each.value for each in graph.metadata_props} == said_by(tmp_path / "run" / "backbone.safetensors")
    [entry] = session_of(tmp_path / "w.onnx").get_inputs()
    assert (entry.name, entry.shape, entry.type) == ("images", ["batch", 3, side, side], "tensor(float)")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code_of(tmp_path / "w.onnx.md"), names)
    assert names["features"].shape[0] == 8


@pytest.mark.slow
def test_with_preprocessing_bytes_go_in(run_folder: Path, tmp_path: Path) -> None:
    encoder = run_with("resnet-tiny", run_folder, tmp_path / "run", 16)
    exported(tmp_path / "run", "onnx", tmp_path / "w.onnx", with_preprocessing=True, opset=19)
    plan = PLANS["simsiam-cifar"]
    mean, std = (torch.tensor(values)[:, None, None] for values in (plan.mean, plan.std))
    for n in (1, 4):
        given = torch.randint(256, (n, 3, 16, 16), generator=torch.Generator().manual_seed(n)).byte()
        assert agree(tmp_path / "w.onnx", encoder, given, (given / 255 - mean) / std)
    assert [each.version for each in onnx.load(tmp_path / "w.onnx").opset_import if not each.domain] == [19]


def test_a_graph_that_computes_something_else_never_appears(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph is right but for one part in a thousand of its features."""
    run_with("resnet-tiny", run_folder, tmp_path / "run", 16)

    def slightly_off(path: Path, given: Any) -> Any:
        encoder = load_encoder(tmp_path / "run").module.eval()
        return lambda images: 1.001 * encoder(given(images))

    monkeypatch.setattr(to_onnx, "_graph", lambda *_: b"a graph")
    monkeypatch.setattr(to_onnx, "_runner", slightly_off)
    with pytest.raises(UserError, match=r"features differ by .* more than 0.0001\), so nothing was written"):
        exported(tmp_path / "run", "onnx", tmp_path / "w.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_graph_that_onnxruntime_does_not_take_never_appears(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(to_onnx, "_graph", lambda *_: b"no graph at all")
    with pytest.raises(UserError, match="onnxruntime refuses the graph"):
        exported(run_folder, "onnx", tmp_path / "w.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_torch_can_t_express_is_said_and_nothing_is_left(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wavering.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.scale = torch.nn.Parameter(torch.ones(3))\n"
        "    def forward(self, x):\n"
        "        found = x.mean((2, 3)) * self.scale\n"
        "        return found if found.sum() > 0 else -found\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run_with("wavering.Net", run_folder, tmp_path / "run", 16)
    with pytest.raises(UserError, match=r"torch can't express 'wavering.Net' in ONNX: .*Use --to safetensors"):
        exported(tmp_path / "run", "onnx", tmp_path / "w.onnx")
    assert not list(tmp_path.glob("*.onnx*")) + list(tmp_path.glob(".*"))


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_package_is_named_with_the_way_to_get_it(
    package: str, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf'needs {package}.*pip install "phinets\[onnx\]"'):
        exported(run_folder, "onnx", tmp_path / "w.onnx")


OWN = """
import torch

def tiny():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
"""


@pytest.mark.parametrize(
    ("name", "side", "mean", "whose"),
    [
        ("timm:test_vit", 160, (0.5, 0.5, 0.5), "the backbone's own"),
        ("own_encoder.tiny", 32, PLANS["simsiam-cifar"].mean, "ImageNet's"),
    ],
)
def test_a_file_s_graph_of_bytes_gives_what_load_gives(
    name: str, side: int, mean: tuple[float, ...], whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.startswith("timm:"):
        pytest.importorskip("timm")
    (tmp_path / "own_encoder.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    torch.save(backbone(name).state_dict(), tmp_path / "w.pth")
    exported(tmp_path / "w.pth", "onnx", tmp_path / "w.onnx", backbone=name, with_preprocessing=True)
    encoder = phinets.load(tmp_path / "w.pth", device="cpu", backbone=name)
    assert (encoder.image_size, encoder.plan.mean) == (side, mean)
    given = torch.randint(256, (3, 3, side, side), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    found = session_of(tmp_path / "w.onnx").run(["features"], {"images": given.numpy()})[0]
    assert np.allclose(found, encoder(given).numpy(), rtol=0, atol=1e-4)
    assert f"(default: the file has no metadata; {whose})" in (tmp_path / "w.onnx.md").read_text()

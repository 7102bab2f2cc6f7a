"""Encoders by name."""

import sys
import types
import warnings
from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn
from torchvision.models.resnet import Bottleneck

from phinets.backbones import BACKBONES, backbone, feature_width, warn_if_small
from phinets.backbones.weights import matching_resnet
from phinets.config.errors import UserError
from phinets.methods.networks import mlp


@pytest.mark.parametrize(("name", "size"), [("resnet18-cifar", 32), ("resnet-tiny", 32), ("resnet18", 64)])
def test_an_encoder_gives_as_many_features_as_it_says(name: str, size: int) -> None:
    encoder = backbone(name).eval()
    assert encoder(torch.zeros(2, 3, size, size)).shape == (2, feature_width(encoder))


def test_resnet18_cifar_is_torchvision_s_resnet18_but_for_its_stem() -> None:
    """With the stem exchanged and the pooling left out, torchvision's own model takes the weights and agrees."""
    ours = backbone("resnet18-cifar").eval()
    theirs = torchvision.models.resnet18()
    theirs.conv1, theirs.maxpool, theirs.fc = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity(), nn.Identity()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(ours(x), theirs.eval()(x), atol=1e-5)


def test_resnet18_cifar_keeps_the_full_side_through_its_first_stage() -> None:
    encoder = backbone("resnet18-cifar").eval()
    seen: dict[str, torch.Size] = {}
    encoder.get_submodule("layer1").register_forward_hook(lambda m, i, out: seen.update(shape=out.shape))
    encoder(torch.zeros(1, 3, 32, 32))
    assert seen["shape"] == (1, 64, 32, 32)


def test_no_residual_starts_at_zero() -> None:
    names = [n for n, p in backbone("resnet18-cifar").named_parameters() if n.endswith("bn2.weight") and (p == 0).all()]
    assert names == []


def test_with_zero_init_residual_every_block_without_a_shortcut_layer_starts_as_the_identity() -> None:
    encoder = backbone("resnet50/zero-init-residual")
    blocks = [block for block in encoder.modules() if isinstance(block, Bottleneck)]
    assert len(blocks) == 3 + 4 + 6 + 3
    assert all((block.bn3.weight == 0).all() and (block.bn3.bias == 0).all() for block in blocks)
    assert not any((norm.weight == 0).any() for block in blocks for norm in (block.bn1, block.bn2))
    x = torch.rand(2, 2048, 3, 3, generator=torch.Generator().manual_seed(0))
    for block in blocks[-2:]:
        assert torch.equal(block(x), x)
    plain = backbone("resnet50")
    assert not any((block.bn3.weight == 0).any() for block in plain.modules() if isinstance(block, Bottleneck))


def test_a_variant_is_trained_and_exported_as_the_encoder_before_its_slash() -> None:
    name = "resnet50/zero-init-residual"
    weights = backbone(name).state_dict()
    assert matching_resnet(weights) == "resnet50"
    backbone("resnet50").load_state_dict(weights, strict=True)
    with pytest.warns(UserWarning, match="ImageNet stem"):
        warn_if_small(name, 32)


def test_every_torchvision_resnet_is_there() -> None:
    resnets = {n for n in torchvision.models.list_models() if n.startswith(("resnet", "resnext", "wide_resnet"))}
    assert resnets <= set(BACKBONES)


def test_a_small_image_with_an_imagenet_stem_warns_and_says_what_to_use() -> None:
    with pytest.warns(UserWarning, match="resnet18-cifar"):
        backbone("resnet18", image_size=32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backbone("resnet18", image_size=224)
        backbone("resnet18-cifar", image_size=32)


def test_a_dotted_path_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("someones_models")
    module.small = lambda: nn.Flatten()  # type: ignore[attr-defined]
    module.number = lambda: 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "someones_models", module)
    assert feature_width(backbone("someones_models.small"), 8) == 3 * 8 * 8
    assert isinstance(backbone("someones_models:small"), nn.Flatten)
    with pytest.raises(UserError, match=r"nn\.Module"):
        backbone("someones_models.number")


@pytest.mark.parametrize("path", ["no.such.module", "torch.nn.NoSuchLayer", "torch.nn.Linear"])
def test_a_path_that_gives_nothing_is_named(path: str) -> None:
    with pytest.raises(UserError, match="can't be imported"):
        backbone(path)


def test_a_file_beside_the_person_is_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_nets.py").write_text("from torch.nn import Flatten\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    assert isinstance(backbone("my_own_nets.Flatten"), nn.Flatten)


def test_what_an_encoder_says_of_itself_is_checked_where_the_side_is_known() -> None:
    encoder = nn.Flatten()
    encoder.num_features = 7  # type: ignore[assignment]
    assert feature_width(encoder) == 7
    assert feature_width(encoder, 8) == 3 * 8 * 8


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'resnet-tiny'"):
        backbone("resnet_tiny")


def test_timm_is_asked_for_by_name_when_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(UserError, match=r"phinets\[timm\]"):
        backbone("timm:resnet18")


def test_timm_models_come_without_their_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that timm documents, answered by a stand-in."""
    asked: dict[str, object] = {}

    def create_model(name: str, **options: object) -> nn.Module:
        asked.update(name=name, **options)
        return nn.Flatten()

    stand_in = types.SimpleNamespace(list_models=lambda *_: ["vit_tiny"], create_model=create_model)
    monkeypatch.setitem(sys.modules, "timm", stand_in)
    backbone("timm:vit_tiny")
    assert asked == {"name": "vit_tiny", "pretrained": False, "num_classes": 0}
    with pytest.raises(UserError, match="Did you mean 'vit_tiny'"):
        backbone("timm:vit_tny")


def test_an_encoder_that_gives_no_vectors_is_refused_and_left_in_its_mode() -> None:
    encoder = nn.Conv2d(3, 4, 3)
    with pytest.raises(UserError, match=r"one feature vector per image"):
        feature_width(encoder)
    assert encoder.training


@pytest.mark.parametrize("last_norm", [True, False])
def test_a_head_has_a_layer_per_width_and_norms_between(last_norm: bool) -> None:
    head = mlp((5, 4, 3, 2), last_norm=last_norm)
    kinds = [type(m).__name__ for m in head]
    assert kinds.count("Linear") == 3
    assert kinds[-1] == ("BatchNorm1d" if last_norm else "Linear")
    assert head(torch.zeros(6, 5)).shape == (6, 2)


def test_the_last_norm_may_be_without_scale_and_shift() -> None:
    head = mlp((5, 4, 3), last_norm=True, last_affine=False)
    norms = [m for m in head if isinstance(m, nn.BatchNorm1d)]
    assert [n.affine for n in norms] == [True, False]

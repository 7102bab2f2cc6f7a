"""The C4 detector: cut from an encoder without changing it, every weight trained, nothing drawn from a global seed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from phinets.backbones import backbone
from phinets.config.detection import Proposals, smoke
from phinets.config.errors import UserError
from phinets.detection.c4 import REGION, Detector, RegionPool, fresh_detector, split_encoder
from phinets.detection.loader import Sample

LOOKS = replace(smoke().proposals, regions=16, train_proposals=50)
LAYOUTS = {"resnet18": (16, 256, 512), "resnet50": (16, 1024, 2048), "resnet18-cifar": (4, 256, 512)}
"""Stride and channels of the map, and features of a region."""


def tiny(seed: int = 0) -> Detector:
    return fresh_detector(encoder("resnet-tiny"), 2, LOOKS, seed)


def encoder(name: str) -> nn.Module:
    """An encoder whose norms have seen something."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = backbone(name)
        for module in made.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.uniform_(module.bias, -0.2, 0.2)
    return made.eval()


def pictures(n: int = 2) -> list[Sample]:
    rng = torch.Generator().manual_seed(1)
    boxes = torch.tensor([[4.0, 6.0, 30.0, 40.0], [30.0, 10.0, 60.0, 50.0]])
    sizes = [(64, 72), (56, 80)] * n
    return [Sample(torch.randn(3, *size, generator=rng), boxes, torch.tensor([0, 1])) for size in sizes[:n]]


@pytest.mark.parametrize(
    "name",
    ["resnet-tiny", "resnet18", *(pytest.param(n, marks=pytest.mark.slow) for n in ("resnet18-cifar", "resnet50"))],
)
def test_the_trunk_s_map_is_the_encoder_s_own_and_the_head_goes_on_from_it(name: str) -> None:
    whole = encoder(name)
    seen: dict[str, Tensor] = {}
    for stage in ("layer3", "layer4"):
        whole.get_submodule(stage).register_forward_hook(lambda m, i, out, stage=stage: seen.update({stage: out}))
    trunk, head = split_encoder(whole)
    stride, channels, features = LAYOUTS.get(name, (8, 64, 128))
    x = torch.randn(1, 3, 32, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        feature = whole(x)
        places = trunk.eval()(x)
        assert torch.equal(places, seen["layer3"])
        assert torch.equal(head.layer4.eval()(places), seen["layer4"])  # type: ignore[union-attr]
        assert torch.allclose(head.eval()(places) * (1 + 1e-5) ** 0.5, feature, atol=1e-5)  # a fresh norm changes ε
    assert places.shape == (1, channels, 32 // stride, 64 // stride)
    assert (trunk.stride, trunk.channels, head.features) == (stride, channels, features)
    assert head(torch.randn(3, channels, REGION, REGION)).shape == (3, features)


def test_cutting_leaves_the_encoder_alone() -> None:
    whole = encoder("resnet-tiny")
    before = {name: value.clone() for name, value in whole.state_dict().items()}
    trunk, _ = split_encoder(whole)
    with torch.no_grad():
        for weight in trunk.parameters():
            weight.zero_()
    assert all(torch.equal(value, before[name]) for name, value in whole.state_dict().items())


class Otherwise(nn.Module):
    """Named as torchvision's, but with something in between."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = encoder("resnet-tiny")
        for name, part in self.inside.named_children():
            self.add_module(name, part)

    def forward(self, x: Tensor) -> Tensor:
        doubled: Tensor = 2 * self.inside(x)
        return doubled


def test_an_encoder_of_another_layout_is_refused() -> None:
    with pytest.raises(UserError, match=r"has no conv1, bn1, layer1, layer2, layer3, layer4\. Use a ResNet"):
        split_encoder(nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 4)))
    with pytest.raises(UserError, match="computes more than stem, layer1"):
        split_encoder(Otherwise())


def test_timm_s_resnet_can_be_cut_too() -> None:
    pytest.importorskip("timm")
    trunk, head = split_encoder(encoder("timm:resnet18"))
    assert (trunk.stride, trunk.channels, head.features) == (16, 256, 512)


def test_classes_are_learned_one_above_their_label_since_the_first_place_is_for_nothing() -> None:
    detector = tiny().train()
    told: list[list[int]] = []
    whole = detector.roi_heads.forward

    def listening(maps: Any, proposals: Any, sizes: Any, targets: Any) -> Any:
        told.extend(target["labels"].tolist() for target in targets)
        return whole(maps, proposals, sizes, targets)

    detector.roi_heads.forward = listening
    detector(pictures())
    assert told == [[1, 2], [1, 2]]


def test_every_weight_gets_a_gradient() -> None:
    detector = tiny().train()
    torch.stack(list(detector(pictures()).values())).sum().backward()
    without = [name for name, weight in detector.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert without == []
    assert all(weight.requires_grad for weight in detector.parameters())


def test_a_step_of_learning_moves_every_running_mean_and_looking_moves_none() -> None:
    detector = tiny()
    means = {name: value.clone() for name, value in detector.named_buffers() if name.endswith("running_mean")}
    detector.eval()
    detector.detect([shown.pixels for shown in pictures()])
    assert all(torch.equal(detector.get_buffer(name), value) for name, value in means.items())
    detector.train()(pictures())
    assert not any(torch.equal(detector.get_buffer(name), value) for name, value in means.items())
    detector.detect([shown.pixels for shown in pictures()])
    assert detector.training


def test_there_are_fifteen_anchors_at_each_place_of_the_one_map() -> None:
    detector = fresh_detector(encoder("resnet18"), 20, Proposals(), 0)
    assert detector.rpn.head.cls_logits.out_channels == 15
    images = detector._batch([torch.zeros(3, 64, 96)])
    (anchors,) = detector.rpn.anchor_generator(images, [torch.zeros(1, 256, 4, 6)])
    assert anchors.shape == (15 * 4 * 6, 4)
    sides = (anchors[:15, 2] - anchors[:15, 0]) * (anchors[:15, 3] - anchors[:15, 1])
    assert torch.allclose(sides.sqrt().view(3, 5).mean(0), torch.tensor([32.0, 64, 128, 256, 512]), rtol=0.02)
    assert torch.equal(anchors[15] - anchors[0], torch.tensor([16.0, 0, 16, 0]))


def test_a_region_is_pooled_at_its_place_in_pixels_of_the_picture() -> None:
    ramp = torch.arange(20.0).view(1, 1, 1, 20).expand(1, 1, 20, 20)  # place x of the map holds x
    box = torch.tensor([[32.0, 64.0, 144.0, 176.0]])  # at stride 16: from 2 to 9
    pooled = RegionPool(16)({"0": ramp.contiguous()}, [box], [(320, 320)])
    centres = 2 + (torch.arange(REGION) + 0.5) * 7 / REGION - 0.5  # place x is centered at x + ½
    assert torch.allclose(pooled[0, 0, 0], centres, atol=1e-4)


def test_what_is_found_lies_in_the_picture_and_names_a_class() -> None:
    found = tiny().detect([shown.pixels for shown in pictures()])
    assert len(found) == 2
    for one, (height, width) in zip(found, [(64, 72), (56, 80)], strict=True):
        assert len(one.boxes) == len(one.labels) == len(one.scores) <= 100
        assert set(one.labels.tolist()) <= {0, 1}
        assert (one.boxes >= 0).all()
        assert (one.boxes[:, 2] <= width).all()
        assert (one.boxes[:, 3] <= height).all()
        assert (one.scores >= 0.05).all()


def test_a_picture_is_seen_alike_alone_and_beside_a_larger_one() -> None:
    detector = tiny().eval()
    small, large = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    beside = detector._batch([small[:, :48, :64], large])
    assert beside.image_sizes == [(48, 64), (96, 96)]
    assert torch.equal(beside.tensors[0, :, :48, :64], small[:, :48, :64])
    assert not beside.tensors[0, :, 48:].any()
    assert detector._batch([torch.zeros(3, 41, 50)]).tensors.shape == (1, 3, 48, 56)


def test_new_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(5)
    one = tiny().state_dict()
    state = torch.random.get_rng_state()
    two = tiny().state_dict()
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(one[name], two[name]) for name in one)
    other = tiny(seed=1).state_dict()
    changed = {name.split(".")[0] for name in one if not torch.equal(one[name], other[name])}
    assert changed == {"rpn", "roi_heads"}
    assert all(torch.equal(one[name], other[name]) for name in one if "trunk" in name or "layer4" in name)


def test_the_names_of_the_weights_say_where_they_come_from() -> None:
    names: Any = {".".join(name.split(".")[:3]) for name in tiny().state_dict()}
    assert {"trunk.conv1.weight", "trunk.layer1.0", "trunk.layer3.0", "roi_heads.box_head.layer4"} <= names
    assert "roi_heads.box_head.norm" in names
    assert np.all(["layer4" not in name for name in names if name.startswith("trunk")])

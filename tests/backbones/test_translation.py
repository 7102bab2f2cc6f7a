"""Names in other houses: a rule, its way back, and who is whose twin."""

import pytest
import torch

from phinets.backbones import BACKBONES, IMAGENET_STEM, backbone, has_imagenet_stem
from phinets.backbones.weights import detectron2_name, fresh_resnet, matching_resnet

META = torch.device("meta")


def by_replacing(name: str) -> str:
    """The rule as people write it down: one replacement after another."""
    if "layer" not in name:
        name = "stem." + name
    for stage in (1, 2, 3, 4):
        name = name.replace(f"layer{stage}", f"res{stage + 1}")
    for norm in (1, 2, 3):
        name = name.replace(f"bn{norm}", f"conv{norm}.norm")
    return name.replace("downsample.0", "shortcut").replace("downsample.1", "shortcut.norm")


@pytest.mark.parametrize("resnet", ["resnet18", "resnet50", "resnet101"])
def test_every_name_is_translated_by_the_rule_and_back(resnet: str) -> None:
    names = [name for name in fresh_resnet(resnet, META).state_dict() if not name.startswith("fc.")]
    translated = [detectron2_name(name) for name in names]
    assert translated == [by_replacing(name) for name in names]
    assert len(set(translated)) == len(names)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("conv1.weight", "stem.conv1.weight"),
        ("bn1.running_var", "stem.conv1.norm.running_var"),
        ("layer1.0.conv3.weight", "res2.0.conv3.weight"),
        ("layer4.2.bn3.bias", "res5.2.conv3.norm.bias"),
        ("layer3.0.downsample.0.weight", "res4.0.shortcut.weight"),
        ("layer3.0.downsample.1.running_mean", "res4.0.shortcut.norm.running_mean"),
    ],
)
def test_names_that_detectron2_s_own_models_have(ours: str, theirs: str) -> None:
    assert detectron2_name(ours) == theirs


@pytest.mark.parametrize("name", IMAGENET_STEM)
def test_every_resnet_is_its_own_twin_with_or_without_its_classifier(name: str) -> None:
    tensors = fresh_resnet(name, META).state_dict()
    assert matching_resnet(tensors) == name
    assert matching_resnet({key: value for key, value in tensors.items() if not key.startswith("fc.")}) == name


@pytest.mark.parametrize("name", [name for name in BACKBONES if not has_imagenet_stem(name)])
def test_an_encoder_for_small_images_has_no_twin(name: str) -> None:
    assert matching_resnet(backbone(name).state_dict()) is None


def test_one_weight_more_or_of_another_shape_is_no_twin() -> None:
    tensors = dict(fresh_resnet("resnet18", META).state_dict())
    assert matching_resnet(tensors | {"extra": torch.zeros(1)}) is None
    assert matching_resnet(tensors | {"conv1.weight": torch.zeros(64, 3, 3, 3)}) is None
    del tensors["bn1.bias"]
    assert matching_resnet(tensors) is None


@pytest.mark.parametrize("name", IMAGENET_STEM)
def test_timm_s_resnets_bear_torchvision_s_names(name: str) -> None:
    timm = pytest.importorskip("timm")
    with META:
        theirs = timm.create_model(name, num_classes=0).state_dict()
    assert matching_resnet(theirs) == name

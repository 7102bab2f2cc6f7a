"""Faster R-CNN in the C4 layout: a ResNet up to layer3 sees the picture, its layer4 each region (Ren et al. 2015).

Proposals, matching, losses and the choice of detections are torchvision's. As in Detectron2: RoIAlign of 14 × 14 on the
one map, sampled as densely as its pixels; a batch norm after layer4; the predictors' first weights.
"""

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.roi_heads import RoIHeads
from torchvision.models.detection.rpn import RegionProposalNetwork, RPNHead
from torchvision.ops import roi_align

from phinets.backbones.frozen import frozen
from phinets.config.detection import Proposals
from phinets.config.errors import UserError
from phinets.detection.boxes import Found
from phinets.detection.lessons import Shown
from phinets.views import random_stream

REGION = 14
"""Side of the piece of the map that stands for a region; layer4 halves it."""
TRIAL = 64
"""Side of the picture that an encoder's layout is tried on."""
STAGES = ("layer1", "layer2", "layer3", "layer4")


class Trunk(nn.Sequential):
    """A ResNet from the picture to the end of layer3: (n, 3, h, w) → (n, channels, h / stride, w / stride)."""

    stride: int
    channels: int


class Head(nn.Sequential):
    """Of each region: layer4, a batch norm, the mean over places: (n, channels, 14, 14) → (n, features)."""

    features: int


def cut(encoder: nn.Module) -> tuple[Trunk, Head]:
    """A copy of an encoder as trunk and head, if it has the layout of torchvision's ResNets.

    Whether it has is tried: the mean of layer4 of the trunk's map must be the encoder's own feature.
    """
    encoder = deepcopy(encoder).float().cpu()
    parts = dict(encoder.named_children())
    missing = [name for name in ("conv1", "bn1", *STAGES) if name not in parts]
    if missing:
        raise UserError(f"a C4 detector can't be cut from this encoder: it has no {', '.join(missing)}. {CURE}")
    stem = [("conv1", parts["conv1"]), ("bn1", parts["bn1"])]
    stem.append(("relu", parts.get("relu") or parts.get("act1") or nn.ReLU(inplace=True)))
    stem += [(name, parts[name]) for name in ("maxpool", *STAGES[:3]) if name in parts]
    trunk, head = Trunk(), Head()
    for name, part in stem:
        trunk.add_module(name, part)
    head.add_module("layer4", parts["layer4"])
    _measure(encoder, trunk, head)
    head.add_module("norm", nn.BatchNorm2d(head.features))
    head.add_module("pool", nn.AdaptiveAvgPool2d(1))
    head.add_module("flat", nn.Flatten())
    return trunk, head


CURE = (
    "Use a ResNet with torchvision's names (conv1, bn1, layer1 … layer4): resnet18, resnet50, resnet18-cifar, …; "
    "`phinets list backbones` shows all."
)


def _measure(encoder: nn.Module, trunk: Trunk, head: Head) -> None:
    """Note stride and channels, once trunk and head are seen to be all that the encoder does."""
    picture = torch.rand(1, 3, TRIAL, TRIAL, generator=random_stream(0, "trial"))
    with frozen(encoder):
        wanted, places = encoder(picture), trunk(picture)
        deep = head(places)
    same = deep.ndim == 4 and wanted.shape == deep.shape[:2]
    if not same or not torch.allclose(deep.mean((2, 3)), wanted, rtol=1e-4, atol=1e-5):
        raise UserError(
            "a C4 detector can't be cut from this encoder: its parts are named as torchvision's, but it does more than "
            f"stem, layer1 … layer4 and a mean over places. {CURE}"
        )
    trunk.stride, trunk.channels = TRIAL // places.shape[-1], places.shape[1]
    head.features = deep.shape[1]


class Predictor(nn.Module):
    """Of each region's feature: how likely each class is, the first being none, and a box for each of them."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.cls_score = nn.Linear(features, classes + 1)
        self.bbox_pred = nn.Linear(features, 4 * (classes + 1))
        for layer, spread in ((self.cls_score, 0.01), (self.bbox_pred, 0.001)):
            nn.init.normal_(layer.weight, std=spread)
            nn.init.zeros_(layer.bias)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.cls_score(features), self.bbox_pred(features)


class RegionPool(nn.Module):
    """The piece of the one map under each proposal, 14 × 14."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, maps: dict[str, Tensor], proposals: list[Tensor], sizes: list[tuple[int, int]]) -> Tensor:
        pooled: Tensor = roi_align(
            maps["0"], proposals, REGION, spatial_scale=1 / self.stride, sampling_ratio=0, aligned=True
        )
        return pooled


class Detector(nn.Module):
    """Pictures → in training the four losses, otherwise what is found."""

    def __init__(self, encoder: nn.Module, classes: int, looks: Proposals) -> None:
        super().__init__()
        self.trunk, head = cut(encoder)
        sizes, ratios = (looks.anchor_sizes,), (looks.anchor_ratios,)
        self.rpn = RegionProposalNetwork(
            AnchorGenerator(sizes, ratios),
            RPNHead(self.trunk.channels, len(looks.anchor_sizes) * len(looks.anchor_ratios)),
            fg_iou_thresh=0.7,
            bg_iou_thresh=0.3,
            batch_size_per_image=looks.anchors_learned,
            positive_fraction=0.5,
            pre_nms_top_n={"training": looks.train_candidates, "testing": looks.test_candidates},
            post_nms_top_n={"training": looks.train_proposals, "testing": looks.test_proposals},
            nms_thresh=0.7,
        )
        self.roi_heads = RoIHeads(
            RegionPool(self.trunk.stride),
            head,
            Predictor(head.features, classes),
            fg_iou_thresh=0.5,
            bg_iou_thresh=0.5,
            batch_size_per_image=looks.regions,
            positive_fraction=0.25,
            bbox_reg_weights=(10.0, 10.0, 5.0, 5.0),
            score_thresh=0.05,
            nms_thresh=0.5,
            detections_per_img=100,
        )

    def forward(self, pictures: Sequence[Shown]) -> dict[str, Tensor]:
        """The losses: of objectness and boxes of anchors, of classes and boxes of regions."""
        assert self.training
        images = self._stacked([picture.pixels for picture in pictures])
        targets = [{"boxes": p.boxes, "labels": p.labels + 1} for p in pictures]  # 0 is nothing
        maps = {"0": self.trunk(images.tensors)}
        proposals, of_anchors = self.rpn(images, maps, targets)
        _, of_regions = self.roi_heads(maps, proposals, images.image_sizes, targets)
        return {**of_anchors, **of_regions}

    def find(self, pictures: Sequence[Tensor]) -> list[Found]:
        """What is on each picture (3, h, w), in its own pixels; the weights stay as they are."""
        with frozen(self):
            images = self._stacked(pictures)
            maps = {"0": self.trunk(images.tensors)}
            proposals, _ = self.rpn(images, maps)
            said, _ = self.roi_heads(maps, proposals, images.image_sizes)
        return [
            Found(
                one["boxes"].cpu().numpy().astype(np.float64),
                one["labels"].cpu().numpy() - 1,
                one["scores"].cpu().numpy().astype(np.float64),
            )
            for one in said
        ]

    def _stacked(self, pictures: Sequence[Tensor]) -> ImageList:
        """The pictures as one batch, gray below and to the right up to whole strides."""
        sizes = [(int(p.shape[1]), int(p.shape[2])) for p in pictures]
        stride = self.trunk.stride
        height, width = (-(-max(side) // stride) * stride for side in zip(*sizes, strict=True))
        batch = pictures[0].new_zeros(len(pictures), 3, height, width)
        for place, picture, (h, w) in zip(batch, pictures, sizes, strict=True):
            place[:, :h, :w] = picture
        return ImageList(batch, sizes)


def fresh_detector(encoder: nn.Module, classes: int, looks: Proposals, seed: int) -> Detector:
    """A detector around a copy of an encoder; what is new in it is drawn by the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(seed, "detector").initial_seed())
        return Detector(encoder, classes, looks)

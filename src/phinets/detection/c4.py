"""Faster R-CNN in the C4 layout: a ResNet up to layer3 for the image, its layer4 for each region (Ren et al. 2015).

Proposals, matching, losses and the selection of detections are torchvision's. As in Detectron2: RoIAlign of 14 × 14 on
the one map, sampled as densely as its pixels; a batch norm after layer4; the initialization of the predictors.
"""

from collections import OrderedDict
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.roi_heads import RoIHeads
from torchvision.models.detection.rpn import RegionProposalNetwork, RPNHead
from torchvision.ops import roi_align

from phinets.backbones import eval_mode
from phinets.config.detection import Proposals
from phinets.config.errors import UserError
from phinets.detection.average_precision import Detections
from phinets.detection.loader import Sample
from phinets.views import random_stream

REGION = 14
"""Side of a pooled region; layer4 halves it."""
PROBE_SIDE = 64
"""Side of the image that an encoder's layout is checked with."""
STAGES = ("layer1", "layer2", "layer3", "layer4")


class Backbone(nn.Sequential):
    """A ResNet from the image to the end of layer3: (n, 3, h, w) → (n, channels, h / stride, w / stride)."""

    stride: int
    channels: int


class Head(nn.Sequential):
    """For each region layer4, a batch norm, and average pooling: (n, channels, 14, 14) → (n, features)."""

    features: int


def split_encoder(encoder: nn.Module) -> tuple[Backbone, Head]:
    """A copy of an encoder as backbone and head, if it has the layout of torchvision's ResNets.

    The check: the mean of layer4 of the backbone's map must be the encoder's own feature.
    """
    encoder = deepcopy(encoder).float().cpu()
    children = dict(encoder.named_children())
    missing = [name for name in ("conv1", "bn1", *STAGES) if name not in children]
    if missing:
        raise UserError(f"this encoder does not fit a C4 detector: it has no {', '.join(missing)}. {CURE}")
    stem = [("conv1", children["conv1"]), ("bn1", children["bn1"])]
    stem.append(("relu", children.get("relu") or children.get("act1") or nn.ReLU(inplace=True)))
    stem += [(name, children[name]) for name in ("maxpool", *STAGES[:3]) if name in children]
    backbone, head = Backbone(OrderedDict(stem)), Head(OrderedDict(layer4=children["layer4"]))
    _measure(encoder, backbone, head)
    head.add_module("norm", nn.BatchNorm2d(head.features))
    head.add_module("pool", nn.AdaptiveAvgPool2d(1))
    head.add_module("flat", nn.Flatten())
    return backbone, head


CURE = (
    "Use a ResNet with torchvision's names (conv1, bn1, layer1 … layer4): resnet18, resnet50, resnet18-cifar, …; "
    "`phinets list backbones` shows all."
)


def _measure(encoder: nn.Module, backbone: Backbone, head: Head) -> None:
    """Set stride and channels, after the check that backbone and head compute the encoder's feature."""
    image = torch.rand(1, 3, PROBE_SIDE, PROBE_SIDE, generator=random_stream(0, "trial"))
    with eval_mode(encoder):
        feature, feature_map = encoder(image), backbone(image)
        head_map = head(feature_map)
    same = head_map.ndim == 4 and feature.shape == head_map.shape[:2]
    if not same or not torch.allclose(head_map.mean((2, 3)), feature, rtol=1e-4, atol=1e-5):
        raise UserError(
            "this encoder does not fit a C4 detector: it has torchvision's names, but computes more than stem, layer1 "
            f"… layer4 and average pooling. {CURE}"
        )
    backbone.stride, backbone.channels = PROBE_SIDE // feature_map.shape[-1], feature_map.shape[1]
    head.features = head_map.shape[1]


def _predictor(features: int, classes: int) -> FastRCNNPredictor:
    """For each region's feature: a score for each class, the first being the background, and a box for each."""
    predictor = FastRCNNPredictor(features, classes + 1)
    for layer, std in ((predictor.cls_score, 0.01), (predictor.bbox_pred, 0.001)):
        nn.init.normal_(layer.weight, std=std)
        nn.init.zeros_(layer.bias)
    return predictor


class RegionPool(nn.Module):
    """The map under each proposal, 14 × 14."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, maps: dict[str, Tensor], proposals: list[Tensor], sizes: list[tuple[int, int]]) -> Tensor:
        pooled: Tensor = roi_align(
            maps["0"], proposals, REGION, spatial_scale=1 / self.stride, sampling_ratio=0, aligned=True
        )
        return pooled


class Detector(nn.Module):
    """Images → in training the four losses, otherwise detections."""

    def __init__(self, encoder: nn.Module, classes: int, options: Proposals) -> None:
        super().__init__()
        self.trunk, head = split_encoder(encoder)
        sizes, ratios = (options.anchor_sizes,), (options.anchor_ratios,)
        self.rpn = RegionProposalNetwork(
            AnchorGenerator(sizes, ratios),
            RPNHead(self.trunk.channels, len(options.anchor_sizes) * len(options.anchor_ratios)),
            fg_iou_thresh=0.7,
            bg_iou_thresh=0.3,
            batch_size_per_image=options.anchors_per_image,
            positive_fraction=0.5,
            pre_nms_top_n={"training": options.train_candidates, "testing": options.test_candidates},
            post_nms_top_n={"training": options.train_proposals, "testing": options.test_proposals},
            nms_thresh=0.7,
        )
        self.roi_heads = RoIHeads(
            RegionPool(self.trunk.stride),
            head,
            _predictor(head.features, classes),
            fg_iou_thresh=0.5,
            bg_iou_thresh=0.5,
            batch_size_per_image=options.regions,
            positive_fraction=0.25,
            bbox_reg_weights=(10.0, 10.0, 5.0, 5.0),
            score_thresh=0.05,
            nms_thresh=0.5,
            detections_per_img=100,
        )

    def forward(self, samples: Sequence[Sample]) -> dict[str, Tensor]:
        """The losses: objectness and boxes of anchors, classes and boxes of regions."""
        assert self.training
        images = self._batch([sample.pixels for sample in samples])
        targets = [{"boxes": s.boxes, "labels": s.labels + 1} for s in samples]  # 0 is the background
        maps = {"0": self.trunk(images.tensors)}
        proposals, anchor_losses = self.rpn(images, maps, targets)
        _, region_losses = self.roi_heads(maps, proposals, images.image_sizes, targets)
        return {**anchor_losses, **region_losses}

    def detect(self, images: Sequence[Tensor]) -> list[Detections]:
        """Detections on each image (3, h, w), in its own pixels; nothing is trained."""
        with eval_mode(self):
            batch = self._batch(images)
            maps = {"0": self.trunk(batch.tensors)}
            proposals, _ = self.rpn(batch, maps)
            outputs, _ = self.roi_heads(maps, proposals, batch.image_sizes)
        arrays = ([one[key].cpu().numpy() for key in ("boxes", "labels", "scores")] for one in outputs)
        return [Detections(boxes.astype(np.float64), n - 1, scores.astype(np.float64)) for boxes, n, scores in arrays]

    def _batch(self, images: Sequence[Tensor]) -> ImageList:
        """One batch, padded below and to the right to whole strides."""
        sizes = [(int(p.shape[1]), int(p.shape[2])) for p in images]
        stride = self.trunk.stride
        height, width = (-(-max(side) // stride) * stride for side in zip(*sizes, strict=True))
        batch = images[0].new_zeros(len(images), 3, height, width)
        for target, image, (h, w) in zip(batch, images, sizes, strict=True):
            target[:, :h, :w] = image
        return ImageList(batch, sizes)


def fresh_detector(encoder: nn.Module, classes: int, options: Proposals, seed: int) -> Detector:
    """A detector with a copy of an encoder; the seed alone decides its new weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(seed, "detector").initial_seed())
        return Detector(encoder, classes, options)

"""A fine-tuned detector: its weights file, and detections on images of any size."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from phinets.backbones import backbone as backbone_called
from phinets.backbones.weights import read_weights, serialize_weights
from phinets.config.detection import DetectionConfig
from phinets.config.errors import UserError, look_up
from phinets.config.plain import from_plain
from phinets.data.decode import CROP_OVERSAMPLING, ORIENTATION, SIDEWAYS, UnusableError, decode_opened
from phinets.data.files import ImageInput, image_batches
from phinets.detection.average_precision import Detections, GroundTruth
from phinets.detection.c4 import Detector
from phinets.detection.loader import load_sample, resize_and_normalize, resized_size
from phinets.detection.voc import AnnotatedImage, upright_size
from phinets.runtime.devices import pick_device
from phinets.runtime.files import atomic_write

DETECTORS = ("encoder", "scratch")
"""The detectors of a run by their initial weights: the encoder's, or fresh ones."""
WEIGHTS = "detector.safetensors"
METADATA = "phinets"
"""The one key of the weights' metadata, a JSON object: safetensors writes several keys in no fixed order."""
NO_OBJECTS = GroundTruth(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, bool))


class LoadedDetector:
    """A detector with its preprocessing: images → detections in each image's own pixels.

    Args:
        detector: the network.
        config: the run's configuration, for sizes and normalization.
        classes: names; a label is an index into them.
        device: where to compute.
    """

    def __init__(
        self, detector: Detector, config: DetectionConfig, classes: tuple[str, ...], device: torch.device
    ) -> None:
        self.detector, self.options = detector.to(device).eval(), config.images
        self.classes, self.device = classes, device

    def __call__(self, images: ImageInput) -> list[Detections]:
        """Detect objects.

        Args:
            images: one or many, of any sizes: paths, opened Pillow images, or uint8 arrays and tensors.

        Returns:
            For each image boxes (n, 4) from 0 and half-open, labels (n,) and scores (n,), by falling score.
        """
        one = isinstance(images, Image.Image | str | Path | torch.Tensor | np.ndarray)
        each = [images] if one else cast("Iterable[Any]", images)
        return [detections for image in each for detections in self._detect(image)]

    def _detect(self, image: Any) -> Iterator[Detections]:
        if isinstance(image, str | Path):
            path = Path(image).expanduser()
            width, height = upright_size(path)
            sample = load_sample(AnnotatedImage(path, width, height, NO_OBJECTS), self.options, self.options.test_side)
            yield detect_image(self.detector, sample.pixels, width, height, self.device)
        elif isinstance(image, Image.Image):
            yield self._detect_opened(image)
        else:
            for (pixels,) in image_batches(image, 1, 1):
                yield self._detect_opened(Image.fromarray(pixels.permute(1, 2, 0).contiguous().numpy()))

    def _detect_opened(self, picture: Image.Image) -> Detections:
        sideways = picture.getexif().get(ORIENTATION, 1) in SIDEWAYS
        width, height = reversed(picture.size) if sideways else picture.size
        size = resized_size(width, height, self.options.test_side, self.options.max_side)
        try:
            upright = decode_opened(picture, CROP_OVERSAMPLING * min(size))
        except UnusableError as error:
            raise UserError(f"an image can't be used: {error}.") from error
        pixels = resize_and_normalize(upright, size, self.options)
        return detect_image(self.detector, pixels, width, height, self.device)


def detect_image(detector: Detector, pixels: Tensor, width: int, height: int, device: torch.device) -> Detections:
    """Detections on one resized image (3, h, w), with boxes in the pixels of the original width × height."""
    (detections,) = detector.detect([pixels.to(device)])
    scale = np.array([width / pixels.shape[2], height / pixels.shape[1]])
    return detections._replace(boxes=detections.boxes * np.tile(scale, 2))


def save_detector(path: Path, detector: Detector, metadata: Mapping[str, Any]) -> None:
    """Write the weights; `load_detector` needs `backbone`, `classes` and `detection` (the config) in the metadata."""
    weights = {key: value.contiguous().cpu() for key, value in detector.state_dict().items()}
    atomic_write(path, serialize_weights(weights, {METADATA: json.dumps(dict(metadata), sort_keys=True)}))


def load_detector(folder: str | Path, weights: str = "encoder", *, device: str = "auto") -> LoadedDetector:
    """The detector in the folder of a finished `phinets detect`.

    Args:
        folder: the folder.
        weights: which detector: "encoder", fine-tuned from the encoder's weights, or "scratch".
        device: auto (cuda, else mps, else cpu), or a torch device.

    Returns:
        A callable: images in, `Detections` out.

    Raises:
        UserError: the folder holds no such detector, or one of another version.
    """
    look_up("detector", weights, dict.fromkeys(DETECTORS))
    path = Path(folder).expanduser() / weights / WEIGHTS
    if not path.is_file():
        raise UserError(f"there is no detector '{path}'. Give the folder of a finished `phinets detect`.")
    file = read_weights(path)
    try:
        metadata = json.loads(file.metadata[METADATA])
        config, classes = from_plain(DetectionConfig, metadata["detection"]), tuple(metadata["classes"])
        detector = Detector(backbone_called(metadata["backbone"]), len(classes), config.proposals)
        detector.load_state_dict(dict(file.tensors))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"'{path}' is no detector of this version of phinets: {error}.") from error
    return LoadedDetector(detector, config, classes, pick_device(device))

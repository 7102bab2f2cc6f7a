"""A fine-tuned detector to be used: pictures in, boxes out."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from phinets.backbones import backbone as backbone_called
from phinets.backbones.weights import read_weights
from phinets.config.detection import Detection
from phinets.config.errors import UserError, look_up
from phinets.config.plain import from_plain
from phinets.data.given import Given, given_chunks
from phinets.data.pictures import ORIENTATION, SIDEWAYS, UnusableError, as_read
from phinets.detection.annotation import upright_size
from phinets.detection.boxes import Found, Truth
from phinets.detection.c4 import Detector
from phinets.detection.lessons import fitted, seen_size, show
from phinets.detection.voc import Scene
from phinets.runs.detect import in_own_pixels
from phinets.runs.detect_folder import ABOUT, ARMS, WEIGHTS
from phinets.runtime.devices import pick_device

NOTHING = Truth(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0, bool))


class FineTuned:
    """A detector with the preprocessing that it is used to: pictures → what is found on each, in its own pixels.

    Pictures are opened ones, files or uint8 arrays, one or many, of any sizes. A label is a place in `classes`.
    """

    def __init__(self, detector: Detector, config: Detection, classes: tuple[str, ...], device: torch.device) -> None:
        self.detector, self.config, self.classes, self.device = detector.to(device).eval(), config, classes, device

    def __call__(self, pictures: Given) -> list[Found]:
        """Boxes (n, 4) from 0 and half-open, labels (n,) and scores (n,) of each picture, the surest first."""
        return [found for one in _each(pictures) for found in self._on(one)]

    def _on(self, given: Any) -> Iterator[Found]:
        if isinstance(given, str | Path):
            path, seen = Path(given).expanduser(), self.config.pictures
            width, height = upright_size(path)
            pixels = show(Scene(path, width, height, NOTHING), seen, seen.test_side).pixels
            yield in_own_pixels(self.detector, pixels, width, height, self.device)
        elif isinstance(given, Image.Image):
            yield self._opened(given)
        else:
            for (image,) in given_chunks(given, 1, 1):
                yield self._opened(Image.fromarray(image.permute(1, 2, 0).contiguous().numpy()))

    def _opened(self, picture: Image.Image) -> Found:
        turned = picture.getexif().get(ORIENTATION, 1) in SIDEWAYS
        width, height = reversed(picture.size) if turned else picture.size
        size = seen_size(width, height, self.config.pictures.test_side, self.config.pictures.max_side)
        try:
            upright = as_read(picture, min(size))
        except UnusableError as error:
            raise UserError(f"a picture can't be used: {error}. Give a whole one.") from error
        return in_own_pixels(self.detector, fitted(upright, size, self.config.pictures), width, height, self.device)


def _each(pictures: Given) -> Iterable[Any]:
    """One by one; what is a picture or an array of them itself is one thing."""
    return [pictures] if isinstance(pictures, Image.Image | str | Path | torch.Tensor | np.ndarray) else pictures


def load_detector(folder: str | Path, arm: str = "encoder", *, device: str = "auto") -> FineTuned:
    """The detector that `phinets detect` left in a folder: the one from the encoder's weights, or "scratch"."""
    look_up("arm of a detection transfer", arm, dict.fromkeys(ARMS))
    path = Path(folder).expanduser() / arm / WEIGHTS
    if not path.is_file():
        raise UserError(f"there is no detector '{path}'. Give the folder of a finished `phinets detect`.")
    weights = read_weights(path)
    try:
        about = json.loads(weights.said[ABOUT])
        config, classes = from_plain(Detection, about["detection"]), tuple(about["classes"])
        detector = Detector(backbone_called(about["backbone"]), len(classes), config.proposals)
        detector.load_state_dict(dict(weights.tensors))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"'{path}' is no detector of this version of phinets: {error}.") from error
    return FineTuned(detector, config, classes, pick_device(device))

"""The judgement of an encoder on a data set, the same while it learns, at the end and afterwards."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from phinets.config.errors import UserError
from phinets.config.probes import CACHED
from phinets.config.record import Score
from phinets.config.run import EvalConfig
from phinets.config.views import ViewPlan
from phinets.data import BadImages, ImageSet, InMemory, Split, Taken, batches
from phinets.data.fingerprint import set_fingerprint
from phinets.evaluation.features import feature_chunks, features, pixels
from phinets.evaluation.knn import knn_accuracy
from phinets.evaluation.linear import linear_accuracy
from phinets.views import prepare

AT_ONCE = 512
"""Images that an encoder is shown together."""


class Embedded(NamedTuple):
    """Features (n, d) and labels (n,)."""

    features: Tensor
    labels: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Eye:
    """How encoders are shown images: not augmented, all of them, a batch at a time."""

    plan: ViewPlan
    size: int
    device: torch.device
    dtype: torch.dtype = torch.float32
    bad_images: BadImages

    def embedded(self, part: ImageSet, encoder: nn.Module | None) -> Embedded:
        """Features and labels of labelled images; the images themselves where there is no encoder."""
        assert part.labels is not None
        rows: list[Tensor] = []
        chunks = self._chunks(part, rows)
        if encoder is None:
            return Embedded(pixels(chunks, self._prepared), part.labels[torch.cat(rows)])
        found = features(encoder, chunks, self._prepared, device=self.device)
        return Embedded(found, part.labels[torch.cat(rows)])

    def stream(self, part: ImageSet, encoder: nn.Module) -> Iterator[Taken]:
        """Features and row numbers of all images, a batch at a time, for more of them than the memory holds."""
        rows: list[Tensor] = []
        for found in feature_chunks(encoder, self._chunks(part, rows), self._prepared, device=self.device):
            yield Taken(found, rows.pop())

    def _chunks(self, part: ImageSet, rows: list[Tensor]) -> Iterator[Tensor]:
        """The images a batch at a time; `rows` is told which they are, and `bad_images` which are bad."""
        for taken in batches(part.images, AT_ONCE):
            rows.append(taken.rows)
            self.bad_images.add(taken.bad)
            yield taken.images

    def _prepared(self, images: Tensor) -> Tensor:
        return prepare(images, self.plan, self.size).to(self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Knows the data and the protocol of a run; is shown encoders."""

    split: Split
    eye: Eye
    protocol: EvalConfig

    def live_knn(self, encoder: nn.Module) -> float | None:
        """kNN on the small bank, for the eye during training."""
        sides = self._sides(self.protocol.online_bank, self.protocol.online_queries, encoder)
        return None if sides is None else self._knn(*sides)

    def score(self, encoder: nn.Module | None) -> Score:
        """kNN and linear probe on the final bank and the whole test part; of raw pixels where there is no encoder."""
        sides = self._sides(self.protocol.final_bank, None, encoder)
        if sides is None:
            return Score(knn=None, linear=None)
        known, asked = sides
        return Score(knn=self._knn(known, asked), linear=linear_accuracy(*asked, *known))

    def describe(self) -> str:
        """The protocol in words, to stand beside every number."""
        bank, asked = self.final_parts
        why = no_judgement(bank.labels, asked.labels)
        if why is not None:
            return f"{why}, so there is neither kNN nor a linear probe"
        vote = knn_protocol(min(self.protocol.num_neighbors, len(bank)), self.protocol.knn_temperature)
        whose = {"fast": "", "slow": "the slow encoder's ", "both": ""}[self.protocol.encoder]
        return f"{whose}backbone features; {sides_protocol(len(bank), len(asked))}; kNN: {vote}; linear: {CACHED}"

    @property
    def final_parts(self) -> tuple[ImageSet, ImageSet]:
        """What the score knows, and what it asks about."""
        return self._parts(self.protocol.final_bank, None)

    def _parts(self, bank: int | None, asked: int | None) -> tuple[ImageSet, ImageSet]:
        """The first labelled images that are known, and that are asked about."""
        return self.split.known.labelled.head(bank), self.split.test.labelled.head(asked)

    def _sides(self, bank: int | None, asked: int | None, encoder: nn.Module | None) -> "Sides | None":
        """Their features; None where no judgement can be made of their labels."""
        parts = self._parts(bank, asked)
        if no_judgement(*(part.labels for part in parts)) is not None:
            return None
        return self.eye.embedded(parts[0], encoder), self.eye.embedded(parts[1], encoder)

    def _knn(self, known: Embedded, asked: Embedded) -> float:
        """Percent right by the vote of k neighbors, or of the whole bank where it is smaller than k."""
        k, temperature = min(self.protocol.num_neighbors, len(known.labels)), self.protocol.knn_temperature
        return knn_accuracy(*asked, *known, k=k, temperature=temperature, device=self.eye.device)


Sides = tuple[Embedded, Embedded]
"""What is known, and what is asked about."""


def sides_protocol(bank: int, asked: int, every: bool = True) -> str:
    """How many images are known and asked about, in words."""
    return f"bank of {bank} training images, {'all' if every else 'the first'} {asked} test images"


def knn_protocol(k: int | str, temperature: float) -> str:
    """The vote in words."""
    return f"cosine, k={k}, T={temperature:g}"


def no_judgement(known: Tensor | None, asked: Tensor | None) -> str | None:
    """Why no judgement with labels can be made of these, in words; None where one can."""
    for labels, called in ((known, "training"), (asked, "test")):
        if labels is None or not len(labels):
            return f"the {called} images have no labels"
    assert known is not None
    return "the training images are all of one class" if len(known.unique()) < 2 else None


def require_classes(known: Tensor | None, asked: Tensor | None, of: str) -> None:
    """Refuse what no judgement with labels can be made of."""
    why = no_judgement(known, asked)
    if why is not None:
        raise UserError(
            f"{why} in '{of}', and this judgement needs two classes at least. Put pictures into one folder per class, "
            "or judge on labelled data: --data NAME."
        )


T = TypeVar("T")
_JUDGED: dict[tuple[Hashable, ...], Any] = {}


def recalled(
    judged: Callable[[], T], eye: Eye, parts: Iterable[ImageSet], encoder: nn.Module | None, rules: Hashable
) -> T:
    """What `judged` gives; not asked again where it was asked before with the same `rules` of the same images.

    Images that are not in memory are not compared, and so always judged anew.
    """
    parts = tuple(parts)
    if not all(isinstance(part.images, InMemory) for part in parts):
        return judged()
    seen = (eye.plan, eye.size, str(eye.device), str(eye.dtype))
    key = (*map(set_fingerprint, parts), *seen, _of_weights(encoder), rules)
    if key not in _JUDGED:
        _JUDGED[key] = judged()
    return cast(T, _JUDGED[key])


def _of_weights(encoder: nn.Module | None) -> str | None:
    """A check sum of what an encoder is: its layers, and every number in them."""
    if encoder is None:
        return None
    found = blake2b(repr(encoder).encode(), digest_size=16)
    for name, value in encoder.state_dict().items():
        found.update(name.encode())
        found.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()

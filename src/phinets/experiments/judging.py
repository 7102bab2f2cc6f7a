"""The judgement of an encoder on a data set, the same while it learns and at the end."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from phinets.config.record import Score
from phinets.config.run import Judging
from phinets.config.views import ViewPlan
from phinets.data import ImageSet, Rejects, Split, batches
from phinets.evaluation.features import features, pixels
from phinets.evaluation.knn import knn_accuracy
from phinets.evaluation.linear import linear_accuracy
from phinets.views import prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Knows the data and the protocol; is shown encoders."""

    split: Split
    plan: ViewPlan
    size: int
    protocol: Judging
    device: torch.device
    dtype: torch.dtype
    rejects: Rejects

    def live_knn(self, encoder: nn.Module) -> float | None:
        """kNN on the small bank, for the eye during training."""
        bank, asked = self.split.known.head(self.protocol.live_bank), self.split.test.head(self.protocol.live_queries)
        if bank.labels is None or asked.labels is None:
            return None
        return self._knn(self._embedded(bank, encoder), self._embedded(asked, encoder))

    def score(self, encoder: nn.Module | None) -> Score:
        """kNN and linear probe on the final bank and the whole test part; of raw pixels where there is no encoder."""
        bank, asked = self.split.known.head(self.protocol.final_bank), self.split.test
        if bank.labels is None or asked.labels is None:
            return Score(knn=None, linear=None)
        known, queries = self._embedded(bank, encoder), self._embedded(asked, encoder)
        linear = linear_accuracy(queries.features, queries.labels, known.features, known.labels)
        return Score(knn=self._knn(known, queries), linear=linear)

    def describe(self) -> str:
        """The protocol in words, to stand beside every number."""
        if self.split.known.labels is None or self.split.test.labels is None:
            return "the data have no labels, so there is neither kNN nor a linear probe"
        p = self.protocol
        bank = len(self.split.known.head(p.final_bank))
        return (
            f"backbone features; bank of {bank} training images, all {len(self.split.test)} test images; "
            f"kNN: cosine, k={min(p.knn_k, bank)}, T={p.knn_temperature:g}; "
            "linear: logistic regression on cached features, L2 chosen on a held-out tenth"
        )

    def _knn(self, bank: "Embedded", asked: "Embedded") -> float:
        k, temperature = self.protocol.knn_k, self.protocol.knn_temperature
        return knn_accuracy(asked.features, asked.labels, bank.features, bank.labels, k=k, temperature=temperature)

    def _embedded(self, asked: ImageSet, encoder: nn.Module | None) -> "Embedded":
        assert asked.labels is not None
        rows: list[Tensor] = []
        chunks = self._chunks(asked, rows)
        found = pixels(chunks, self._prepare) if encoder is None else self._features(encoder, chunks)
        return Embedded(found, asked.labels[torch.cat(rows)])

    def _chunks(self, asked: ImageSet, rows: list[Tensor]) -> Iterator[Tensor]:
        """The images a batch at a time; `rows` is told which they are, and `rejects` which are bad."""
        for taken in batches(asked.images, 512):
            rows.append(taken.rows)
            self.rejects.add(taken.bad)
            yield taken.images

    def _features(self, encoder: nn.Module, chunks: Iterable[Tensor]) -> Tensor:
        return features(encoder, chunks, self._prepare, device=self.device)

    def _prepare(self, images: Tensor) -> Tensor:
        return prepare(images, self.plan, self.size).to(self.dtype)


class Embedded(NamedTuple):
    """Features (n, d) and labels (n,)."""

    features: Tensor
    labels: Tensor

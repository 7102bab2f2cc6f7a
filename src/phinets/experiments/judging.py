"""The judgement of an encoder on a data set, the same while it learns and at the end."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from phinets.config.record import Score
from phinets.config.run import Judging
from phinets.config.views import ViewPlan
from phinets.data import ImageSet, Split
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

    def live_knn(self, encoder: nn.Module) -> float | None:
        """kNN on the small bank, for the eye during training."""
        bank, asked = self.split.train.head(self.protocol.live_bank), self.split.test.head(self.protocol.live_queries)
        return self._knn(bank, asked, self._features(encoder, bank), self._features(encoder, asked))

    def score(self, encoder: nn.Module) -> Score:
        """kNN and linear probe on the final bank and the whole test part."""
        return self._score(lambda images: self._features(encoder, images))

    def pixel_score(self) -> Score:
        """The same for raw pixels."""
        return self._score(lambda images: pixels(images.images, self._prepare))

    def describe(self) -> str:
        """The protocol in words, to stand beside every number."""
        p = self.protocol
        bank = len(self.split.train.head(p.final_bank))
        return (
            f"backbone features; bank of {bank} training images, all {len(self.split.test)} test images; "
            f"kNN: cosine, k={min(p.knn_k, bank)}, T={p.knn_temperature:g}; "
            "linear: logistic regression on cached features, L2 chosen on a held-out tenth"
        )

    def _score(self, embed: Callable[[ImageSet], Tensor]) -> Score:
        bank, asked = self.split.train.head(self.protocol.final_bank), self.split.test
        if bank.labels is None or asked.labels is None:
            return Score(knn=None, linear=None)
        known, queries = embed(bank), embed(asked)
        linear = linear_accuracy(queries, asked.labels, known, bank.labels)
        return Score(knn=self._knn(bank, asked, known, queries), linear=linear)

    def _knn(self, bank: ImageSet, asked: ImageSet, known: Tensor, queries: Tensor) -> float | None:
        if bank.labels is None or asked.labels is None:
            return None
        k, temperature = self.protocol.knn_k, self.protocol.knn_temperature
        return knn_accuracy(queries, asked.labels, known, bank.labels, k=k, temperature=temperature)

    def _features(self, encoder: nn.Module, images: ImageSet) -> Tensor:
        return features(encoder, images.images, self._prepare, device=self.device)

    def _prepare(self, images: Tensor) -> Tensor:
        return prepare(images, self.plan, self.size)

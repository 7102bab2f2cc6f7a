"""What a data set is: images and labels to learn from, and others to be asked about."""

from dataclasses import dataclass

from torch import Tensor

from phinets.data.images import Images


@dataclass(frozen=True, slots=True)
class ImageSet:
    """Images, and what is known of them."""

    images: Images
    labels: Tensor | None
    """int64 (n,), or None where nobody said."""

    def __len__(self) -> int:
        return len(self.images)

    def head(self, n: int | None) -> "ImageSet":
        """The first n images; all of them where n is None."""
        return ImageSet(self.images.head(n), None if self.labels is None else self.labels[:n])


@dataclass(frozen=True, slots=True)
class Split:
    """A data set: what is learned from, what is asked about, and the classes' names."""

    train: ImageSet
    test: ImageSet
    classes: tuple[str, ...]

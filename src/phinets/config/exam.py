"""What an encoder is judged on: the options that every judgement from the command line shares."""

from dataclasses import dataclass

from phinets.config.errors import UserError, look_up, require_at_least
from phinets.config.methods import EncoderName
from phinets.config.probes import LabelShare
from phinets.config.views import PLANS


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """Which encoder, and which images it is shown; what is unset is as in the run that the encoder comes from."""

    encoder: EncoderName = "fast"
    """The encoder that learns by gradients, or the slow one that follows it, where the learner has one."""
    backbone: str | None = None
    """For a file of weights: which encoder it fits; `phinets list backbones` shows all."""
    data: str | None = None
    """Which images; `phinets list data` shows all. Unset: the run's."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Whether a data set that is not there may be fetched from the net."""
    classes: tuple[str, ...] = ()
    """Only these classes, by name or number; unset: all."""
    image_size: int | None = None
    """Side of the images that the encoder sees, in pixels; unset: the run's, else what suits the encoder: 224 or 32."""
    views: str | None = None
    """The view plan whose mean and std the encoder is used to; unset: the run's, else timm's or ImageNet's."""
    max_bad_images: int = 10
    """How many images that can't be used are told and skipped; one more, and it stops."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""

    def __post_init__(self) -> None:
        if self.views is not None:
            look_up("view plan", self.views, PLANS)
        require_at_least(self, image_size=8, max_bad_images=0)


@dataclass(frozen=True, kw_only=True)
class EvalOptions(EncoderOptions, LabelShare):
    """Which encoder is judged, and on which images; what is unset is as in the run that the encoder comes from."""

    bank: int | None = None
    """Labelled training images that are known; unset: all."""
    test_images: int | None = None
    """Test images that are asked about; unset: all."""

    def __post_init__(self) -> None:
        LabelShare.__post_init__(self)
        EncoderOptions.__post_init__(self)
        require_at_least(self, bank=2, test_images=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """What a check-up looks at."""

    images: int = 512
    """The first so many training images, in two views each."""
    encoder: EncoderName = "fast"
    """Whose codes and features: the encoder's that learns by gradients, or the slow one's."""
    data: str | None = None
    """Other data than the run's; `phinets list data` shows all."""
    root: str | None = None
    """The folder of all data sets; unset: as in the run."""

    def __post_init__(self) -> None:
        if not 2 <= self.images <= 10_000:
            raise UserError(f"images is {self.images}, but pairs are compared: give 2 to 10,000, e.g. 512.")

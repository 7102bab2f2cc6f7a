"""Brain-inspired self-supervised learning: PhiNet, X-PhiNet, their baselines and their ablations.

    import phinets

    learner = phinets.learner("x-phinet/cosine", backbone="resnet18-cifar")
    for views in phinets.data_loader(dataset, "simsiam-cifar"):
        losses = learner(views)

    encoder = phinets.load("runs/first")
    features = encoder(["a.jpg", "b.jpg"])

Torch is imported at the first use of a name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phinets.detection.inference import load_detector as load_detector
    from phinets.evaluation.encoders import Encoder as Encoder
    from phinets.evaluation.encoders import load as load
    from phinets.methods import Learner as Learner
    from phinets.methods import Losses as Losses
    from phinets.methods import learner as learner
    from phinets.views import Views as Views
    from phinets.views import data_loader as data_loader
    from phinets.views import make_views as make_views

__version__ = "0.2.0"
__all__ = ["Encoder", "Learner", "Losses", "Views", "data_loader", "learner", "load", "load_detector", "make_views"]

_MODULES = {
    "Encoder": "phinets.evaluation.encoders",
    "load": "phinets.evaluation.encoders",
    "load_detector": "phinets.detection.inference",
    "Learner": "phinets.methods",
    "Losses": "phinets.methods",
    "learner": "phinets.methods",
    "Views": "phinets.views",
    "data_loader": "phinets.views",
    "make_views": "phinets.views",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'phinets' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)

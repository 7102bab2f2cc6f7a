"""The learners as values: which code must predict which, one line each.

Letters as in the paper: f is the fast encoder (backbone and projector), h the predictor of CA3, g the predictor of CA1;
z = f(x), p = h(z), y = g(p); x_1 and x_2 are augmented views, x_0 is the anchor.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from phinets.config.errors import UserError, look_up, require_at_least, require_finite, require_in

EncoderName = Literal["fast", "slow"]
Anchor = Literal["original", "augmented"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sim2:
    """The second prediction (CA1): g(h(f(x_i))) must give back the code of the anchor x_0."""

    code_of: EncoderName = "fast"
    """The encoder whose code of the anchor is predicted; "slow" is the X of X-PhiNet."""
    anchor: Anchor = "original"
    """The anchor x_0: the image itself, or a third augmented view."""
    distance: Literal["mse", "cosine"] = "mse"
    """The distance of y and z_0."""
    g: Literal["mlp", "identity", "h"] = "mlp"
    """The CA1 predictor: its own network, none (g = I), or h once more (g = h)."""
    stop_gradient: bool = True
    """SG-2: whether z_0 is a constant for the gradient."""

    def __post_init__(self) -> None:
        if self.code_of == "slow" and not self.stop_gradient:
            raise UserError(
                "a slow encoder takes no gradient, so Sim2(code_of='slow', stop_gradient=False) can't be. "
                "Use code_of='fast' for the ablation without stop-gradient."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """SimSiam and everything built from it: predictions between views (Sim-1) and of the anchor (Sim-2)."""

    sim1_target: EncoderName = "fast"
    """The encoder whose code of the other view h predicts; "slow" makes BYOL."""
    sim1_distance: Literal["cosine", "squared"] = "cosine"
    """Mean of −cos over both directions (SimSiam), or sum of 2 − 2cos (BYOL)."""
    first: Literal["augmented", "original"] = "augmented"
    """The first input: a view, or the original image (SimSiam's Orig-In ablation)."""
    sim2: Sim2 | None = None
    """The second prediction; without it there is no CA1."""
    history: bool = False
    """RM-SimSiam's history encoder: an EMA of f that h also predicts, and that pulls f back from the second task on."""

    @property
    def needs_slow(self) -> bool:
        """Whether the method uses a slow copy of f."""
        return self.history or self.sim1_target == "slow" or (self.sim2 is not None and self.sim2.code_of == "slow")

    @property
    def anchor(self) -> Anchor | None:
        """The third view, if the method uses one."""
        if self.sim2 is not None:
            return self.sim2.anchor
        return "original" if self.first == "original" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decorrelation:
    """Barlow Twins: the cross-correlation of the two views' codes must be the identity."""

    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """MoCo v2: InfoNCE of a view against a queue of other images' keys."""

    anchor: Anchor | None = None


Method = Wiring | Decorrelation | Contrast

METHODS: Mapping[str, Method] = {
    "simsiam": Wiring(),
    "simsiam/original-input": Wiring(first="original"),
    "byol": Wiring(sim1_target="slow", sim1_distance="squared"),
    "rm-simsiam": Wiring(history=True),
    "phinet": Wiring(sim2=Sim2()),
    "phinet/cosine": Wiring(sim2=Sim2(distance="cosine")),
    "phinet/identity-g": Wiring(sim2=Sim2(g="identity")),
    "phinet/shared-g": Wiring(sim2=Sim2(g="h")),
    "phinet/no-stop-gradient": Wiring(sim2=Sim2(stop_gradient=False)),
    "phinet/cosine-no-stop-gradient": Wiring(sim2=Sim2(distance="cosine", stop_gradient=False)),
    "phinet/augmented-anchor": Wiring(sim2=Sim2(anchor="augmented")),
    "phinet/cosine-identity-g": Wiring(sim2=Sim2(distance="cosine", g="identity")),
    "phinet/cosine-shared-g": Wiring(sim2=Sim2(distance="cosine", g="h")),
    "x-phinet": Wiring(sim2=Sim2(code_of="slow")),
    "x-phinet/cosine": Wiring(sim2=Sim2(code_of="slow", distance="cosine")),
    "x-phinet/identity-g": Wiring(sim2=Sim2(code_of="slow", g="identity")),
    "x-phinet/cosine-identity-g": Wiring(sim2=Sim2(code_of="slow", distance="cosine", g="identity")),
    "x-phinet/augmented-anchor": Wiring(sim2=Sim2(code_of="slow", anchor="augmented")),
    "x-phinet/cosine-augmented-anchor": Wiring(sim2=Sim2(code_of="slow", distance="cosine", anchor="augmented")),
    "barlow-twins": Decorrelation(),
    "moco-v2": Contrast(),
}


def method(name: str) -> Method:
    """The method called `name`."""
    return look_up("method", name, METHODS)


def has_slow(value: Method) -> bool:
    """Whether a learner has a slow encoder beside the fast one."""
    return isinstance(value, Contrast) or (isinstance(value, Wiring) and value.needs_slow)


def methods_with_slow_encoder() -> str:
    """The families of methods that have a slow encoder, for error messages: "byol, rm-simsiam, x-phinet, moco-v2"."""
    return ", ".join(dict.fromkeys(name.split("/")[0] for name, value in METHODS.items() if has_slow(value)))


def default_projector(value: Method) -> tuple[int, ...]:
    """The default widths of the projector: the paper's, or MoCo v2's 128-d head."""
    return (512, 128) if isinstance(value, Contrast) else (2048, 2048)


def describe(value: Method) -> str:
    """A method in one line."""
    match value:
        case Decorrelation():
            return "Barlow Twins: cross-correlation of the two views → identity"
        case Contrast():
            return "MoCo v2: InfoNCE against a queue of keys from a slow encoder"
    left = "f(x0)" if value.first == "original" else "f(x1)"
    right = "f_slow(x2)" if value.sim1_target == "slow" else "f(x2)"
    text = f"Sim-1: h({left}) → {right} by {value.sim1_distance}"
    if value.history:
        text += "; and → history(x1), history(x2)"
    if (sim2 := value.sim2) is not None:
        head = {"mlp": "g(h(f))", "identity": "h(f)", "h": "h(h(f))"}[sim2.g]
        code = "f_slow" if sim2.code_of == "slow" else "f"
        gradient = "" if sim2.stop_gradient else ", gradient through the code"
        text += f"; Sim-2: {head} → {code}({'x0' if sim2.anchor == 'original' else 'x3'}) by {sim2.distance}{gradient}"
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerOptions:
    """The numbers of a learner. Each method reads those that it uses."""

    beta: float = 0.99
    """Momentum β of the slow, history or key encoder: slow ← β·slow + (1−β)·fast after each step."""
    sim1_weight: float = 1.0
    """Weight of Sim-1, the prediction between the views."""
    sim2_weight: float = 1.0
    """Weight of Sim-2, the prediction of the anchor's code; 0 leaves SimSiam."""
    projector: tuple[int, ...] | None = None
    """Widths of the projector's layers; the last is the dimension of z. Unset: 2048 2048 (MoCo: 512 128)."""
    projector_affine: bool = True
    """Whether the projector's last batch norm has scale and shift (the ImageNet recipe has not)."""
    h_hidden: tuple[int, ...] = (512,)
    """Hidden widths of the predictor h."""
    g_hidden: tuple[int, ...] = (512,)
    """Hidden widths of the predictor g."""
    g_tanh: bool = False
    """A tanh on the output of g, as in the paper's settings table; the authors' code has none."""
    slow_buffers: Literal["own", "copy", "average"] = "own"
    """Batch-norm statistics of the slow encoder: gathered by itself, copied from f, or averaged like the weights."""
    off_diagonal: float = 0.005
    """Barlow Twins' λ, the weight of the off-diagonal terms."""
    temperature: float = 0.1
    """MoCo's temperature T."""
    queue: int = 4096
    """How many keys MoCo keeps."""

    def __post_init__(self) -> None:
        require_finite(self)
        require_in(self, beta="[0, 1]", temperature="(0, inf)")
        require_at_least(self, queue=1, off_diagonal=0, projector=1, h_hidden=1, g_hidden=1)
        if self.sim1_weight < 0 or self.sim2_weight < 0 or self.sim1_weight + self.sim2_weight == 0:
            raise UserError(
                f"the weights of Sim-1 and Sim-2 are {self.sim1_weight} and {self.sim2_weight}: neither may be "
                "negative and one must be above 0."
            )
        if self.projector == ():
            raise UserError("projector names no layer. Give one width or more, e.g. 2048 2048.")


def require_work(value: Method, options: LearnerOptions) -> None:
    """Refuse weights that leave a learner without a loss."""
    if isinstance(value, Wiring) and value.sim2 is None and options.sim1_weight == 0:
        raise UserError("sim1_weight is 0, but this method has no other loss. Use a weight above 0.")

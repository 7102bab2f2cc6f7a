"""What the actions of `phinets dynamics` have in common: which flow, how strong the views, how much weight decay."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from phinets.config.errors import UserError, look_up, unknown

if TYPE_CHECKING:
    from phinets.dynamics.systems import PhiNet, PhiNetPhi, SimSiam, XPhiNet

VERSIONS = {"published": None, "corrected": None}


def require_rho(rho: float) -> None:
    """Refuse a weight decay whose rates floats can't hold beside the others."""
    from phinets.dynamics.systems import LEAST, MOST

    if 0 < rho < LEAST:
        raise UserError(f"rho is {rho}, but below {LEAST:g} floats can't tell its rates from 0: give more, e.g. 0.03.")
    if rho > MOST:
        raise UserError(f"rho is {rho}, but above {MOST:g} floats can't tell other rates from 0: give less, e.g. 0.03.")


@dataclass(frozen=True)
class Family:
    """A flow whose weight decay is still open."""

    system: str = "phinet"
    """Which flow: simsiam, phinet, phinet-phi (with φ beside ψ and γ) or x-phinet (with the slow encoder)."""
    version: str = "corrected"
    """γ̇ as the paper prints it (published) or as its loss gives it (corrected); simsiam has no γ."""
    sigma2: float = 1.5
    """σ² ≥ 0: how far the two views lie from the image."""
    tau: float | None = None
    """For simsiam: the size of the target's weights beside the encoder's own; unset: 1."""
    kappa: float | None = None
    """For x-phinet: the rate of the slow encoder, (1 − momentum) / learning rate; unset: 0.33."""

    def __post_init__(self) -> None:
        self.flow_at(1.0)

    def plain(self) -> dict[str, Any]:
        """What was asked, for JSON: all numbers of the flow."""
        return {"system": self.system} | {
            name: value for name, value in asdict(self.flow_at(1.0)).items() if name != "rho"
        }

    def flow_at(self, rho: float) -> "SimSiam | PhiNet | PhiNetPhi | XPhiNet":
        """The flow under this weight decay, or what is wrong with its words."""
        from phinets.dynamics.systems import SYSTEMS

        if self.system == "matrix":
            raise UserError(
                "the matrix flow has whole manifolds of equilibria: along each eigendirection they are those of "
                "phinet-phi. Say --system phinet-phi; the matrix flow itself is `phinets dynamics flow`."
            )
        require_rho(rho)
        if self.system not in SYSTEMS:
            raise UserError(unknown("system", self.system, [*SYSTEMS, "matrix"]))
        kind = SYSTEMS[self.system]
        look_up("version", self.version, VERSIONS)
        given: dict[str, Any] = {"sigma2": self.sigma2, "rho": rho}
        if self.system != "simsiam":
            given["version"] = self.version
        for name, owner in (("tau", "simsiam"), ("kappa", "x-phinet")):
            value = getattr(self, name)
            if value is not None and self.system != owner:
                raise UserError(f"--{name} {value} is for {owner}, but the system is {self.system}. Leave it out.")
            if value is not None:
                given[name] = value
        return kind(**given)


@dataclass(frozen=True)
class Setting(Family):
    """A flow with all its numbers."""

    rho: float = 0.03
    """ρ > 0: weight decay."""

    def __post_init__(self) -> None:
        self.flow()

    def plain(self) -> dict[str, Any]:
        """What was asked, for JSON: all numbers of the flow."""
        return {"system": self.system} | asdict(self.flow())

    def flow(self) -> "SimSiam | PhiNet | PhiNetPhi | XPhiNet":
        """The flow that the words name."""
        return self.flow_at(self.rho)

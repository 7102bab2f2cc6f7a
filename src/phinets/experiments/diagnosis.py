"""Why a run may have collapsed, and what to change: read off its config."""

from phinets.config.methods import Wiring, method
from phinets.config.run import Training


def diagnosis(config: Training, verdict: str, spread: float, rank: float) -> str:
    """One paragraph for a run whose codes no longer tell images apart."""
    what = f"The codes have {verdict} (std·√d {spread:.2f}, effective rank {rank:.1f}): "
    return (
        what
        + "different images get nearly the same code. Likely cause and cure: "
        + "; or ".join(_causes(config))
        + "."
    )


def _causes(config: Training) -> list[str]:
    causes = []
    wiring = method(config.method)
    sim2 = wiring.sim2 if isinstance(wiring, Wiring) else None
    if sim2 is not None and not sim2.stop_gradient:
        causes.append("the gradient flows through the anchor's code (use a method with stop-gradient, e.g. phinet)")
    if isinstance(wiring, Wiring) and wiring.needs_slow and config.learner.beta == 1.0:
        causes.append("β = 1 never moves the slow encoder (use --beta 0.99)")
    if config.optimisation.weight_decay > 1e-3:
        wd = config.optimisation.weight_decay
        causes.append(f"a weight decay of {wd:g} is strong (use --weight-decay 5e-4 or less)")
    if config.peak_lr > 0.5 and config.optimisation.optimiser == "sgd":
        causes.append(f"a peak learning rate of {config.peak_lr:g} is high (use --lr {config.optimisation.lr / 4:g})")
    if not config.optimisation.constant_h:
        causes.append("h slows down with the schedule (use --constant-h)")
    if config.batch < 64:
        causes.append(f"a batch of {config.batch} gives noisy batch statistics (use --batch 128 or more)")
    return causes or ["the learning rate or the weight decay does not suit this data (try half of each)"]

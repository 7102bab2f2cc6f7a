"""The wirings, against the paper's pseudocode restated here."""

import copy
from collections.abc import Callable
from typing import cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets import Views
from phinets.config.errors import UserError
from phinets.config.methods import METHODS, Sim2, Wiring
from phinets.methods.siamese import Predictive
from tests.helpers import tiny_learner

PREDICTIVE = [name for name, value in METHODS.items() if isinstance(value, Wiring)]
WITH_SLOW = [name for name in PREDICTIVE if cast(Wiring, METHODS[name]).needs_slow]


def D(p: Tensor, z: Tensor) -> Tensor:  # noqa: N802
    """The listing's negative cosine similarity."""
    z = z.detach()
    p = F.normalize(p, dim=1)
    z = F.normalize(z, dim=1)
    return -(p * z).sum(dim=1).mean()


def listing(f: nn.Module, h: nn.Module, g: nn.Module, f_anchor: nn.Module, views: Views) -> Tensor:
    """Listings 1 and 2 of the paper (they differ in f_anchor), word for word."""
    x1, x2, x = views
    assert x is not None
    z0, z1, z2 = f_anchor(x), f(x1), f(x2)
    p1, p2 = h(z1), h(z2)
    y1, y2 = g(p1), g(p2)
    z0 = z0.detach()
    l_cos = D(p1, z2) / 2 + D(p2, z1) / 2
    l_cor = F.mse_loss(y1, z0) / 2 + F.mse_loss(y2, z0) / 2
    return l_cos + l_cor


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def predictive(name: str, **options: object) -> Predictive:
    return cast(Predictive, tiny_learner(name, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "anchor_of"), [("phinet", "f"), ("x-phinet", "slow")])
def test_losses_and_gradients_equal_the_paper_s_listing(name: str, anchor_of: str, views: Views) -> None:
    ours = predictive(name)
    if ours.slow is not None:
        _disturb(ours.slow)
    theirs = copy.deepcopy(ours)
    loss = ours.loss(views).total
    loss.backward()
    said = listing(theirs.f, theirs.h, cast(nn.Module, theirs.g), getattr(theirs, anchor_of), views)
    said.backward()
    assert torch.allclose(loss, said, atol=1e-6)
    assert gradients(ours).keys() == gradients(theirs).keys()
    for key, gradient in gradients(theirs).items():
        assert torch.allclose(gradients(ours)[key], gradient, atol=1e-6), key


def test_simsiam_equals_its_own_pseudocode(views: Views) -> None:
    simsiam = predictive("simsiam")
    z1, z2 = simsiam.f(views.first), simsiam.f(views.second)
    said = D(simsiam.h(z1), z2) / 2 + D(simsiam.h(z2), z1) / 2
    assert torch.allclose(simsiam.loss(views).total, said, atol=1e-12)


def test_the_original_input_takes_the_place_of_the_first_view(views: Views) -> None:
    ablation, simsiam = predictive("simsiam/original-input"), predictive("simsiam")
    assert views.anchor is not None
    swapped = Views(views.anchor, views.second)
    assert torch.equal(ablation.loss(views).total, simsiam.loss(swapped).total)


def test_byol_predicts_the_slow_code_of_the_other_view(views: Views) -> None:
    byol = predictive("byol")
    _disturb(cast(nn.Module, byol.slow))
    p1, p2 = byol.h(byol.f(views.first)), byol.h(byol.f(views.second))
    said = 2 + 2 * D(p1, byol.slow_code(views.second)) + 2 + 2 * D(p2, byol.slow_code(views.first))
    assert torch.allclose(byol.loss(views).total, said, atol=1e-12)


def test_rm_simsiam_adds_the_history_of_both_views(views: Views) -> None:
    learner, simsiam = predictive("rm-simsiam"), predictive("simsiam")
    _disturb(cast(nn.Module, learner.slow))
    p1 = learner.h(learner.f(views.first))
    remembered = (D(p1, learner.slow_code(views.first)) + D(p1, learner.slow_code(views.second))) / 2
    assert torch.allclose(learner.loss(views).total, simsiam.loss(views).total + remembered, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in PREDICTIVE if cast(Wiring, METHODS[n]).sim2 is not None])
def test_every_sim2_equals_its_plain_restatement(name: str, views: Views) -> None:
    learner = predictive(name, sim2_weight=0.7)
    sim2 = cast(Sim2, cast(Wiring, METHODS[name]).sim2)
    if learner.slow is not None:
        _disturb(learner.slow)
    assert views.anchor is not None
    z0 = (learner.slow if sim2.code_of == "slow" else learner.f)(views.anchor)  # type: ignore[misc]
    z1, z2 = learner.f(views.first), learner.f(views.second)
    p1, p2 = learner.h(z1), learner.h(z2)
    g: Callable[[Tensor], Tensor] = {"mlp": learner.g, "identity": lambda p: p, "h": learner.h}[sim2.g]  # type: ignore[assignment]
    compare = F.mse_loss if sim2.distance == "mse" else (lambda y, z: -F.cosine_similarity(y, z).mean())
    said = (D(p1, z2) + D(p2, z1)) / 2 + 0.7 * (compare(g(p1), z0) + compare(g(p2), z0)) / 2
    assert torch.allclose(learner.loss(views).total, said, atol=1e-10)


@pytest.mark.parametrize("name", ["phinet", "phinet/cosine", "x-phinet", "x-phinet/cosine"])
def test_a_second_prediction_that_weighs_nothing_leaves_simsiam(name: str, views: Views) -> None:
    light, simsiam = predictive(name, sim2_weight=0.0), predictive("simsiam")
    ours, theirs = light.loss(views), simsiam.loss(views)
    ours.total.backward()
    theirs.total.backward()
    assert torch.equal(ours.total, theirs.total)
    for key, gradient in gradients(simsiam).items():
        assert torch.equal(gradients(light)[key], gradient), key
    for (key, a), b in zip(light.f.named_buffers(), simsiam.f.buffers(), strict=True):
        assert torch.equal(a, b), key


def _gradient_through_the_anchor(name: str, views: Views) -> Tensor | None:
    assert views.anchor is not None
    x0 = views.anchor.clone().requires_grad_()
    predictive(name).loss(Views(views.first, views.second, x0)).total.backward()
    return x0.grad


@pytest.mark.parametrize("name", PREDICTIVE)
def test_the_anchor_s_code_takes_a_gradient_only_where_sg_2_is_off(name: str, views: Views) -> None:
    sim2 = cast(Wiring, METHODS[name]).sim2
    gradient = _gradient_through_the_anchor(name, views)
    if sim2 is not None and not sim2.stop_gradient:
        assert gradient is not None
        assert gradient.abs().sum() > 0
    elif name != "simsiam/original-input":
        assert gradient is None


def test_no_gradient_reaches_the_codes_that_are_predicted(views: Views) -> None:
    """Sim-1 with a constant p: only z̄ is left to carry a gradient, and it must not."""
    learner = predictive("simsiam")
    learner.h = nn.Sequential(Detach())
    assert not learner.loss(views).total.requires_grad


class Detach(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


@pytest.mark.parametrize("name", WITH_SLOW)
def test_no_gradient_reaches_the_slow_encoder(name: str, views: Views) -> None:
    learner = predictive(name)
    learner.loss(views).total.backward()
    assert learner.slow is not None
    assert all(p.grad is None and not p.requires_grad for p in learner.slow.parameters())


@pytest.mark.parametrize("name", WITH_SLOW)
def test_the_slow_encoder_moves_only_after_a_step_and_by_one_minus_beta(name: str, views: Views) -> None:
    learner = predictive(name, beta=0.9)
    assert learner.slow is not None
    before = [p.clone() for p in learner.slow.parameters()]
    learner.loss(views).total.backward()
    torch.optim.SGD([p for p in learner.parameters() if p.requires_grad], lr=0.5).step()
    assert all(torch.equal(a, b) for a, b in zip(before, learner.slow.parameters(), strict=True))
    learner.after_step()
    for old, new, fast in zip(before, learner.slow.parameters(), learner.f.parameters(), strict=True):
        assert torch.allclose(new, 0.9 * old + 0.1 * fast, atol=1e-12)


def test_beta_zero_makes_the_target_the_fast_encoder_after_the_step(views: Views) -> None:
    learner = predictive("x-phinet", beta=0.0)
    learner.loss(views).total.backward()
    torch.optim.SGD([p for p in learner.parameters() if p.requires_grad], lr=0.5).step()
    learner.after_step()
    assert learner.slow is not None
    assert views.anchor is not None
    for slow, fast in zip(learner.slow.parameters(), learner.f.parameters(), strict=True):
        assert torch.equal(slow, fast)
    assert torch.equal(learner.slow(views.anchor), learner.f(views.anchor))


def test_beta_one_never_moves_the_slow_encoder(views: Views) -> None:
    learner = predictive("x-phinet", beta=1.0)
    _disturb(learner.f)
    assert learner.slow is not None
    before = [p.clone() for p in learner.slow.parameters()]
    learner.after_step()
    assert all(torch.equal(a, b) for a, b in zip(before, learner.slow.parameters(), strict=True))


def test_shared_g_is_h_itself() -> None:
    learner = predictive("phinet/shared-g")
    assert learner.g is learner.h
    assert len(list(learner.parameters())) == len(list(predictive("simsiam").parameters()))


def test_tanh_on_g_bounds_its_output() -> None:
    learner = predictive("phinet", g_tanh=True)
    assert learner.g is not None
    out = learner.g(100 * torch.randn(50, 6, dtype=torch.float64))
    assert out.abs().max() <= 1
    assert predictive("phinet").g is not None
    assert predictive("phinet").g(100 * torch.randn(50, 6, dtype=torch.float64)).abs().max() > 1  # type: ignore[misc]


@pytest.mark.parametrize("name", ["simsiam", "phinet", "x-phinet", "byol"])
def test_each_view_goes_through_batch_norm_on_its_own(name: str, views: Views) -> None:
    """Scaling one view's contrast must not change another view's code, as it would if batches were joined."""
    learner = predictive(name)
    seen: list[Tensor] = []
    learner.f.projector.register_forward_hook(lambda module, inputs, output: seen.append(output.detach().clone()))
    learner.loss(views)
    alone = learner.f(views.first).detach()
    assert any(torch.equal(alone, z) for z in seen)
    assert views.anchor is not None
    changed = Views(views.first, 5 * views.second + 1, 3 * views.anchor)
    seen.clear()
    learner.loss(changed)
    assert any(torch.equal(alone, z) for z in seen)


def test_the_anchor_of_phinet_is_normalized_by_its_own_batch(views: Views) -> None:
    learner = predictive("phinet")
    assert views.anchor is not None
    seen: list[Tensor] = []
    learner.f.register_forward_hook(lambda module, inputs, output: seen.append(output.detach().clone()))
    learner.loss(views)
    z0 = seen[0]
    assert torch.allclose(z0, copy.deepcopy(learner.f)(views.anchor), atol=1e-12)
    assert torch.allclose(z0.mean(0), torch.zeros(6, dtype=torch.float64), atol=1e-6)


def test_in_evaluation_each_view_depends_on_its_own_image_alone(views: Views) -> None:
    learner = predictive("x-phinet").eval()
    assert views.anchor is not None
    whole = learner.slow_code(views.anchor)
    assert torch.allclose(whole[:3], learner.slow_code(views.anchor[:3]), atol=1e-12)


@pytest.mark.parametrize("rule", ["own", "copy", "average"])
def test_buffers_of_the_slow_encoder_follow_their_rule(rule: str, views: Views) -> None:
    learner = predictive("x-phinet", beta=0.9, slow_buffers=rule)
    learner.loss(views)
    assert learner.slow is not None
    before = {k: v.clone() for k, v in learner.slow.named_buffers()}
    learner.after_step()
    for name, fast in learner.f.named_buffers():
        now = learner.slow.get_buffer(name)
        expected = {"own": before[name], "copy": fast, "average": 0.9 * before[name] + 0.1 * fast}[rule]
        if fast.is_floating_point():
            assert torch.allclose(now, expected, atol=1e-12), name


def test_rm_simsiam_pulls_f_back_from_the_second_task_on() -> None:
    learner = predictive("rm-simsiam", beta=0.9)
    assert learner.slow is not None
    _disturb(learner.f)
    fast = [p.clone() for p in learner.f.parameters()]
    learner.after_step()
    assert all(torch.equal(a, b) for a, b in zip(fast, learner.f.parameters(), strict=True))
    learner.begin_task(1)
    slow = [p.clone() for p in learner.slow.parameters()]
    learner.after_step()
    for f0, s0, f1, s1 in zip(fast, slow, learner.f.parameters(), learner.slow.parameters(), strict=True):
        assert torch.allclose(f1, 0.9 * f0 + 0.1 * s0, atol=1e-12)
        assert torch.allclose(s1, 0.9 * s0 + 0.1 * f1, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in PREDICTIVE if cast(Wiring, METHODS[n]).anchor])
def test_a_missing_anchor_is_named(name: str, views: Views) -> None:
    with pytest.raises(UserError, match="anchor"):
        predictive(name).loss(Views(views.first, views.second))


def test_a_slow_code_with_gradient_can_t_be_wired() -> None:
    with pytest.raises(UserError, match="takes no gradient"):
        Sim2(code_of="slow", stop_gradient=False)


def _disturb(module: nn.Module) -> None:
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=generator, dtype=p.dtype))

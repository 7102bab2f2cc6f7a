"""CaSSLe: the frozen encoder's codes are predicted from the second task on, by the family's own loss."""

import copy
import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets import Learner, Views
from phinets.config.methods import METHODS
from phinets.methods import distil
from phinets.methods.cassle import Distiller
from phinets.runtime import distributed
from phinets.training.step import has_idle_parameters, train_step
from tests.helpers import tiny_learner, tiny_train_state, tiny_views


def distilled(name: str, weight: float = 0.5, seed: int = 0) -> Learner:
    with torch.random.fork_rng():
        torch.manual_seed(7 + seed)
        return distil(tiny_learner(name, seed), weight=weight, hidden=(4,))


def distiller_of(learner: Learner) -> Distiller:
    assert learner.distiller is not None
    return learner.distiller


def learn(learner: Learner, steps: int = 3, seed: int = 0) -> Learner:
    train_state = tiny_train_state(learner, weight_decay=0.0)
    for step in range(steps):
        train_step(train_state, [tiny_views(seed=seed + step)], rate=0.1, peak=0.1)
    return learner


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


def copied(module: nn.Module) -> dict[str, Tensor]:
    return {key: value.clone() for key, value in module.state_dict().items()}


@pytest.mark.parametrize("name", METHODS)
def test_in_the_first_task_the_loss_is_exactly_the_learner_s_own(name: str, views: Views) -> None:
    plain, ours = tiny_learner(name), distilled(name)
    ours.begin_task(0)
    own, found = plain(views), ours(views)
    assert torch.equal(found.total, own.total)
    assert found.terms["distil"] == 0.0
    assert {k: float(v) for k, v in found.terms.items() if k != "distil"} == {k: float(v) for k, v in own.terms.items()}


@pytest.mark.parametrize("name", METHODS)
def test_without_a_distiller_a_learner_gives_its_loss(name: str, views: Views) -> None:
    assert torch.equal(tiny_learner(name)(views).total, tiny_learner(name).loss(views).total)
    assert "distil" not in tiny_learner(name)(views).terms


@pytest.mark.parametrize("name", ["simsiam", "x-phinet/cosine"])
def test_the_term_is_the_cosine_between_predictor_and_frozen_code_of_both_views(name: str, views: Views) -> None:
    learner = learn(distilled(name))
    before = copy.deepcopy(learner.f).eval()
    learner.begin_task(1)
    learn(learner, steps=2)
    twin = copy.deepcopy(learner)
    found = learner(views)

    own = twin.loss(views)
    q = distiller_of(twin).predictor

    def agreement(view: Tensor) -> Tensor:
        predicted, known = q(twin.f(view)), before(view).detach()
        return (F.normalize(predicted, dim=1) * F.normalize(known, dim=1)).sum(1).mean()

    term = -(agreement(views.first) + agreement(views.second)) / 2
    assert torch.allclose(found.terms["distil"], term, atol=1e-12)
    assert torch.allclose(found.total, own.total + 0.5 * term, atol=1e-12)


def test_barlow_twins_distils_by_its_own_correlation(views: Views) -> None:
    learner = learn(distilled("barlow-twins"))
    learner.begin_task(1)
    p, z = torch.randn(2, 12, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    a, b = ((x - x.mean(0)) / x.std(0, unbiased=False) for x in (p, z))
    c = a.T @ b / 12
    off = c - torch.diag(torch.diagonal(c))
    said = (torch.diagonal(c) - 1).square().sum() + 0.005 * off.square().sum()
    assert torch.allclose(learner.distillation(p, z), said, atol=1e-4)


def test_moco_distils_against_the_other_images_of_the_whole_team(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = distilled("moco-v2")
    p, z, other = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits = F.normalize(p, dim=1) @ F.normalize(z, dim=1).T / 0.1
    assert torch.allclose(learner.distillation(p, z), F.cross_entropy(logits, torch.arange(5)))
    monkeypatch.setattr(distributed, "gather_rows", lambda rows: torch.cat([F.normalize(other, dim=1), rows]))
    monkeypatch.setattr(distributed, "rank", lambda: 1)
    both = F.normalize(p, dim=1) @ F.normalize(torch.cat([other, z]), dim=1).T / 0.1
    assert torch.allclose(learner.distillation(p, z), F.cross_entropy(both, torch.arange(5, 10)))


@pytest.mark.parametrize("name", METHODS)
def test_the_frozen_encoder_is_f_at_the_task_s_beginning_and_stays_so(name: str) -> None:
    learner = learn(distilled(name))
    frozen = distiller_of(learner).frozen
    assert not same(frozen.state_dict(), learner.f.state_dict())
    learner.begin_task(1)
    at_the_beginning = copied(learner.f)
    assert same(frozen.state_dict(), at_the_beginning)
    learn(learner)
    assert same(frozen.state_dict(), at_the_beginning)
    assert not same(learner.f.state_dict(), at_the_beginning)
    learner.begin_task(2)
    assert same(frozen.state_dict(), learner.f.state_dict())


@pytest.mark.parametrize("name", METHODS)
def test_gradients_reach_f_and_the_predictor_but_never_the_frozen_encoder(name: str, views: Views) -> None:
    learner = learn(distilled(name))
    learner.begin_task(1)
    distiller = distiller_of(learner)
    learner.zero_grad()
    losses = learner(views)
    (losses.total - learner.loss(views).total).backward()
    assert all(p.grad is None and not p.requires_grad for p in distiller.frozen.parameters())
    for module in (distiller.predictor, learner.f):
        assert any(p.grad is not None and bool(p.grad.abs().max() > 1e-6) for p in module.parameters())
    assert losses.terms["distil"] != 0.0


@pytest.mark.parametrize("name", METHODS)
def test_what_was_known_becomes_more_predictable(name: str) -> None:
    learner = learn(distilled(name, weight=5.0))
    learner.begin_task(1)
    views = tiny_views(seed=9)
    train_state = tiny_train_state(learner, weight_decay=0.0)
    seen = [train_step(train_state, [views], rate=0.05, peak=0.05).terms["distil"] for _ in range(15)]
    assert seen[-1] < seen[0] - 0.05 * abs(seen[0])


def test_the_frozen_encoder_stays_in_eval_mode_whatever_the_learner_s() -> None:
    learner = distilled("simsiam")
    distiller = distiller_of(learner)
    for mode in (True, False, True):
        learner.train(mode)
        assert distiller.predictor.training is mode
        assert not any(module.training for module in distiller.frozen.modules())


@pytest.mark.parametrize("task", [0, 1])
def test_the_state_dict_brings_all_of_it_back(task: int, views: Views) -> None:
    first = learn(distilled("x-phinet"))
    first.begin_task(task)
    learn(first)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = distilled("x-phinet", seed=5)
    second.load_state_dict(torch.load(file, weights_only=True))
    assert bool(distiller_of(second).active) is (task > 0)
    one, two = first(views), second(views)
    assert torch.equal(one.total, two.total)
    assert torch.equal(one.terms["distil"], two.terms["distil"])


def test_rm_simsiam_still_hears_of_its_task() -> None:
    learner: Any = distilled("rm-simsiam")
    learner.begin_task(2)
    assert int(learner.task) == 2
    assert bool(distiller_of(learner).active)


def test_a_distiller_draws_nothing_from_the_learner_s_weights() -> None:
    plain, ours = tiny_learner("simsiam"), distilled("simsiam")
    assert same(plain.f.state_dict(), ours.f.state_dict())


def test_until_the_second_task_the_predictor_takes_no_part() -> None:
    learner = distilled("simsiam")
    assert not has_idle_parameters(tiny_learner("simsiam"), torch.device("cpu"), 8)
    assert has_idle_parameters(learner, torch.device("cpu"), 8)
    learner.begin_task(1)
    assert not has_idle_parameters(learner, torch.device("cpu"), 8)
    before = copied(distiller_of(distilled("simsiam")).predictor)
    assert same(copied(distiller_of(learn(distilled("simsiam"))).predictor), before)

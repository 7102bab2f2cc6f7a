"""What holds for every learner of the table, and for the two siblings."""

import warnings
from typing import cast

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

import phinets
from phinets import Views
from phinets.config.errors import UserError
from phinets.config.methods import METHODS, LearnerOptions, describe
from phinets.config.plain import to_plain
from phinets.methods import Learner
from phinets.methods.moco import MoCo
from tests.helpers import TinyEncoder, tiny_learner, tiny_views

ISSUED = {
    "simsiam", "simsiam/original-input", "byol", "rm-simsiam", "phinet", "phinet/cosine", "phinet/identity-g",
    "phinet/shared-g", "phinet/no-stop-gradient", "phinet/cosine-no-stop-gradient", "phinet/augmented-anchor",
    "phinet/cosine-identity-g", "phinet/cosine-shared-g",
    "x-phinet", "x-phinet/cosine", "x-phinet/identity-g", "x-phinet/cosine-identity-g", "x-phinet/augmented-anchor",
    "x-phinet/cosine-augmented-anchor", "barlow-twins", "moco-v2",
}  # fmt: skip


def test_the_table_holds_every_learner_of_the_paper() -> None:
    assert set(METHODS) == ISSUED


def test_no_two_methods_are_the_same_value() -> None:
    assert len(set(METHODS.values())) == len(METHODS)
    assert len({describe(value) for value in METHODS.values()}) == len(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_lowers_its_loss_on_a_toy_batch(name: str, views: Views) -> None:
    learner = tiny_learner(name)
    optimizer = torch.optim.SGD([p for p in learner.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
    seen = []
    for _ in range(60):
        optimizer.zero_grad()
        losses = learner.loss(views)
        losses.total.backward()
        optimizer.step()
        learner.after_step()
        seen.append(float(losses.total.detach()))
    start = seen[2]  # from here on MoCo's queue holds real keys
    assert min(seen[-5:]) < start - 0.05 * abs(start)


@pytest.mark.parametrize("name", METHODS)
def test_loss_changes_no_parameter_and_reports_its_terms(name: str, views: Views) -> None:
    learner = tiny_learner(name)
    before = {k: v.clone() for k, v in learner.named_parameters()}
    losses = learner.loss(views)
    assert all(torch.equal(before[k], v) for k, v in learner.named_parameters())
    assert losses.terms
    assert not any(term.requires_grad for term in losses.terms.values())
    assert losses.codes is not None
    assert losses.codes.shape == (12, 6)
    assert not losses.codes.requires_grad


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_learner(name: str, views: Views) -> None:
    assert torch.equal(tiny_learner(name).loss(views).total, tiny_learner(name).loss(views).total)
    assert not torch.equal(tiny_learner(name).loss(views).total, tiny_learner(name, seed=1).loss(views).total)


@pytest.mark.parametrize("name", METHODS)
def test_all_state_travels_in_the_state_dict(name: str, views: Views) -> None:
    """A second learner that takes over the state after some steps goes on exactly as the first."""
    first, second = tiny_learner(name), tiny_learner(name, seed=5)
    first.begin_task(1)
    _steps(first, views, 3)
    second.load_state_dict(first.state_dict())
    assert torch.equal(_steps(first, views, 1), _steps(second, views, 1))


def _steps(learner: phinets.Learner, views: Views, n: int) -> torch.Tensor:
    for _ in range(n):
        losses = learner.loss(views)
        learner.zero_grad()
        losses.total.backward()
        with torch.no_grad():
            for p in learner.parameters():
                if p.grad is not None:
                    p.sub_(0.1 * p.grad)
        learner.after_step()
    return losses.total


def test_defaults_are_the_settled_ones() -> None:
    options = LearnerOptions()
    assert (options.beta, options.sim1_weight, options.sim2_weight) == (0.99, 1.0, 1.0)
    assert (options.h_hidden, options.g_hidden, options.g_tanh) == ((512,), (512,), False)
    assert (options.slow_buffers, options.off_diagonal, options.queue, options.temperature) == ("own", 0.005, 4096, 0.1)


def test_heads_have_the_paper_s_widths() -> None:
    learner = phinets.learner("phinet", backbone="resnet18-cifar")
    projector = list(learner.f.projector.children())
    shapes = [tuple(m.weight.shape) for m in projector if isinstance(m, nn.Linear)]
    assert shapes == [(2048, 512), (2048, 2048)]
    assert [type(m).__name__ for m in projector] == ["Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d"]
    for head in (learner.h, learner.g):
        layers = list(cast(nn.Sequential, head))
        assert [type(m).__name__ for m in layers] == ["Linear", "BatchNorm1d", "ReLU", "Linear"]
        assert cast(nn.Linear, layers[0]).weight.shape == (512, 2048)


def test_moco_has_a_128_d_head_and_a_queue_of_4096() -> None:
    moco = cast(MoCo, phinets.learner("moco-v2", backbone="resnet-tiny"))
    assert moco.queue.shape == (4096, 128)


def test_moco_s_queue_holds_the_newest_keys_in_order() -> None:
    moco = cast(MoCo, tiny_learner("moco-v2", beta=1.0))
    keys = []
    for seed in range(3):
        views = tiny_views(seed=seed)
        keys.append(F.normalize(moco.slow_code(views.second), dim=1))
        moco.loss(views)
        moco.after_step()
    newest = torch.cat(keys)[-16:]
    place = int(moco.queue_ptr)
    assert torch.allclose(moco.queue.roll(-place, 0), newest, atol=1e-12)


def test_moco_s_first_step_uses_a_key_encoder_equal_to_the_query_s(views: Views) -> None:
    moco = cast(MoCo, tiny_learner("moco-v2"))
    query, key = F.normalize(moco.f(views.first), dim=1), F.normalize(moco.f(views.second), dim=1)
    logits = torch.cat([(query * key).sum(1, keepdim=True), query @ moco.queue.T], 1) / 0.1
    said = F.cross_entropy(logits, torch.zeros(12, dtype=torch.long))
    assert torch.allclose(moco.loss(views).total, said, atol=1e-12)


def test_barlow_twins_is_its_own_pseudocode(views: Views) -> None:
    learner = tiny_learner("barlow-twins")
    a, b = ((z - z.mean(0)) / z.std(0, unbiased=False) for z in (learner.f(views.first), learner.f(views.second)))
    c = a.T @ b / 12
    off = c - torch.diag(torch.diagonal(c))
    said = (torch.diagonal(c) - 1).square().sum() + 0.005 * off.square().sum()
    assert torch.allclose(learner.loss(views).total, said, atol=1e-4)


def test_any_module_that_gives_features_is_a_backbone(views: Views) -> None:
    flat = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 7)).double()
    learner = phinets.learner("simsiam", backbone=flat.float(), image_size=8, projector=(8, 6), h_hidden=(4,))
    assert next(learner.f.projector.parameters()).shape == (8, 7)


def test_an_unknown_method_offers_the_nearest() -> None:
    with pytest.raises(UserError, match=r"no method called 'xphinet'\. Did you mean 'x-phinet'"):
        phinets.learner("xphinet", backbone=TinyEncoder())


def test_an_unknown_option_offers_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'beta'"):
        phinets.learner("x-phinet", backbone=TinyEncoder(), betta=0.9)


@pytest.mark.parametrize("beta", [-0.1, 1.5, float("nan")])
def test_beta_outside_its_range_is_refused(beta: float) -> None:
    with pytest.raises(UserError, match="beta"):
        phinets.learner("x-phinet", backbone=TinyEncoder(), beta=beta)


def test_the_slow_encoder_is_to_be_had_where_there_is_one() -> None:
    learner = tiny_learner("x-phinet")
    assert learner.slow is not None
    assert learner.encoder("slow") is learner.slow.backbone
    with pytest.raises(UserError, match="no slow encoder"):
        tiny_learner("simsiam").encoder("slow")


def test_a_tuple_or_the_tensors_themselves_are_views(views: Views) -> None:
    for name in ("simsiam", "x-phinet", "moco-v2"):
        learner = tiny_learner(name).eval()
        expected = learner(views).total
        for accepted in ((views,), (tuple(views),), (list(views),), tuple(views)):
            assert torch.equal(learner(*accepted).total, expected)
    x1, x2, x0 = views
    assert torch.isfinite(tiny_learner("simsiam")(x1, x2).total)
    for refused in ((x1,), (x1, x2, x0, x0), ("x1", "x2"), (None,), ((x1,),)):
        with pytest.raises(UserError, match="Views"):
            tiny_learner("simsiam")(*refused)
    with pytest.raises(UserError, match="anchor"):
        tiny_learner("phinet")(x1, x2)


UNUSED = {
    "simsiam": ("beta", "slow_buffers", "sim2_weight", "g_hidden", "g_tanh", "off_diagonal", "temperature", "queue"),
    "phinet": ("beta", "queue"),
    "x-phinet/identity-g": ("g_hidden", "g_tanh"),
    "byol": ("sim2_weight",),
    "barlow-twins": ("beta", "h_hidden", "sim1_weight", "temperature"),
    "moco-v2": ("h_hidden", "g_hidden", "g_tanh", "sim1_weight", "sim2_weight", "off_diagonal", "projector_affine"),
}


def test_an_option_that_a_method_has_no_use_for_is_refused() -> None:
    defaults = LearnerOptions(projector=(8, 6))
    for name, options in UNUSED.items():
        for option in options:
            with pytest.raises(UserError, match=option):
                tiny_learner(name, **{option: getattr(defaults, option)})
    for name in ("simsiam", "moco-v2"):  # their lists are complete
        for option in to_plain(defaults).keys() - set(UNUSED[name]):
            tiny_learner(name, **{option: getattr(defaults, option)})


@pytest.mark.parametrize("name", ["x-phinet", "byol", "moco-v2"])
def test_a_forgotten_after_step_is_said_once(name: str, views: Views) -> None:
    def train(steps: int, follow: bool, learner: Learner) -> list[str]:
        optimizer = torch.optim.SGD([p for p in learner.parameters() if p.requires_grad], lr=0.01)
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            for _ in range(steps):
                for _ in range(2):  # micro-batches
                    learner.loss(views).total.backward()
                optimizer.step()
                if follow:
                    learner.after_step()
        return [str(warning.message) for warning in record]

    assert not train(8, True, tiny_learner(name))
    (message,) = train(8, False, tiny_learner(name))
    assert "after_step()" in message
    assert not train(8, False, tiny_learner("phinet"))


def test_losses_are_printed_in_one_line(views: Views) -> None:
    text = repr(tiny_learner("phinet")(views))
    assert text.startswith("Losses(total=")
    assert "sim1=" in text and "sim2=" in text  # noqa: PT018
    assert "\n" not in text and len(text) < 80  # noqa: PT018


def test_a_backbone_with_its_classifier_is_refused_with_the_cure() -> None:
    for model, head in (("resnet18", "fc"), ("mobilenet_v3_small", "classifier"), ("squeezenet1_1", None)):
        backbone = torchvision.models.get_model(model, weights=None)
        if head is not None:
            with pytest.raises(UserError, match=rf"model\.{head} = torch\.nn\.Identity"):
                phinets.learner("simsiam", backbone=backbone, image_size=32)
            setattr(backbone, head, nn.Identity())
        phinets.learner("simsiam", backbone=backbone, image_size=64, projector=(8, 6), h_hidden=(4,))


def test_a_timm_model_with_its_classifier_is_refused_with_the_cure() -> None:
    timm = pytest.importorskip("timm")
    backbone = timm.create_model("resnet18", num_classes=10)
    for image_size in (None, 32):
        with pytest.raises(UserError, match=r"reset_classifier\(0\)"):
            phinets.learner("simsiam", backbone=backbone, image_size=image_size)
    backbone.reset_classifier(0)
    phinets.learner("simsiam", backbone=backbone, projector=(8, 6), h_hidden=(4,))

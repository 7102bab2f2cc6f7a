"""The vocabulary: values that check themselves, and files that read back to equal values."""

from collections import Counter
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from phinets.config.errors import UserError, look_up
from phinets.config.methods import METHODS, LearnerOptions, Wiring
from phinets.config.plain import from_plain, to_plain
from phinets.config.run import Compute, DataOptions, EvalConfig, Optimization, PretrainConfig
from phinets.config.views import PLANS


def leaves(value: Any) -> list[str]:
    found = []
    for f in fields(value):
        inner = getattr(value, f.name)
        found += leaves(inner) if is_dataclass(inner) else [f.name]
    return found


def test_options_have_unique_names_since_they_carry_no_prefix() -> None:
    assert [name for name, n in Counter(leaves(PretrainConfig())).items() if n > 1] == []


def test_a_changed_config_reads_back_to_an_equal_value() -> None:
    config = PretrainConfig(
        method="phinet/cosine",
        learner=LearnerOptions(projector=(64, 32), beta=0.5),
        source=DataOptions(train_images=100),
        compute=Compute(log=("tensorboard",)),
    )
    assert from_plain(PretrainConfig, to_plain(config)) == config


def test_what_a_file_does_not_say_keeps_its_default() -> None:
    assert from_plain(PretrainConfig, {"epochs": 20}) == PretrainConfig(epochs=20)


def test_a_number_that_yaml_takes_for_text_is_still_a_number() -> None:
    assert from_plain(PretrainConfig, {"optimization": {"weight_decay": "2e-5"}}).optimization.weight_decay == 2e-5


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ({"epoch": 3}, "Did you mean 'epochs'"),
        ({"optimization": {"weightdecay": 0.1}}, "Did you mean 'weight_decay'"),
        ({"epochs": "many"}, "'epochs' is 'many'.* a whole number"),
        ({"epochs": 2.5}, "a whole number"),
        ({"epochs": True}, "a whole number"),
        ({"optimization": {"lr": "fast"}}, "'optimization.lr' is 'fast'.* a number"),
        ({"optimization": {"optimizer": "adam"}}, "one of sgd, adamw, lars"),
        ({"optimization": 3}, "in 'optimization'"),
        ({"learner": {"projector": 64}}, "must be a list"),
        ({"compute": {"compile": "perhaps"}}, "true or false"),
        ([1, 2], "keys and values"),
        ({"optimization": {"lr": 10**400}}, "a number"),
    ],
)
def test_a_mistyped_file_is_refused_with_the_place_and_the_cure(plain: Any, says: str) -> None:
    with pytest.raises(UserError, match=says):
        from_plain(PretrainConfig, plain)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"method": "phinet/cosin"}, "Did you mean 'phinet/cosine'"),
        ({"views": "simsiam"}, "no view plan"),
        ({"views": "none"}, "augments neither view"),
        ({"epochs": 5}, "warm-up of 10 epochs is longer than the run of 5"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch": 1}, "batch norm needs at least two"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_an_impossible_run_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        replace(PretrainConfig(), **change)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LearnerOptions(beta=1.01), "beta is 1.01"),
        (lambda: LearnerOptions(sim1_weight=0, sim2_weight=0), "one must be above 0"),
        (lambda: LearnerOptions(sim2_weight=-1), "neither may be negative"),
        (lambda: LearnerOptions(projector=()), "projector"),
        (lambda: LearnerOptions(h_hidden=(0,)), "h_hidden"),
        (lambda: LearnerOptions(temperature=0), "temperature"),
        (lambda: Optimization(lr=0), "lr is 0"),
        (lambda: Optimization(lr=float("nan")), "lr is nan"),
        (lambda: Optimization(lr=float("inf")), "lr is inf"),
        (lambda: LearnerOptions(sim2_weight=float("nan")), "sim2_weight is nan"),
        (lambda: LearnerOptions(off_diagonal=-1.0), "off_diagonal"),
        (lambda: EvalConfig(final_bank=5, num_neighbors=2), "final_bank is 5"),
        (lambda: PretrainConfig(method="simsiam", learner=LearnerOptions(sim1_weight=0)), "sim1_weight is 0"),
        (lambda: Optimization(momentum=1.0), "momentum is 1"),
        (lambda: Optimization(weight_decay=-1e-4), "weight_decay"),
        (lambda: Compute(threads=0), "threads is 0"),
        (lambda: DataOptions(train_images=0), "train_images is 0"),
        (lambda: DataOptions(image_size=4), "image_size is 4"),
        (lambda: EvalConfig(num_neighbors=0), "num_neighbors is 0"),
        (lambda: EvalConfig(online_bank=100, num_neighbors=200), "200 neighbors"),
        (lambda: EvalConfig(knn_temperature=0), "knn_temperature is 0"),
        (
            lambda: EvalConfig(eval_at_images=(0, 5)),
            "eval_at_images is 0 5, but must be ascending numbers above 0",
        ),
        (lambda: EvalConfig(eval_at_images=(5, 5)), "eval_at_images is 5 5"),
        (lambda: EvalConfig(eval_at_images=(9, 5)), "eval_at_images is 9 5"),
    ],
)
def test_an_impossible_number_is_refused(make: Any, says: str) -> None:
    with pytest.raises(UserError, match=says):
        make()


def test_the_peak_rate_grows_with_the_batch() -> None:
    assert PretrainConfig(batch=512).peak_lr == pytest.approx(2 * PretrainConfig(batch=256).peak_lr)
    assert PretrainConfig(batch=256).peak_lr == PretrainConfig().optimization.lr


@pytest.mark.parametrize("batch", [1, 7, 128])
def test_a_look_is_taken_at_the_first_step_by_which_so_many_images_were_seen(batch: int) -> None:
    counts = (1, 6, 7, 8, 127, 128, 129, 1000)
    first = {next(step for step in range(1, 1001) if step * batch >= count) for count in counts}
    assert EvalConfig(eval_at_images=counts).eval_steps(batch) == first
    assert EvalConfig().eval_steps(batch) == frozenset()


def test_look_up_says_what_is_known_where_nothing_is_near() -> None:
    with pytest.raises(UserError, match=r"no fruit called 'zzz'\. Known: apple, pear"):
        look_up("fruit", "zzz", {"pear": 1, "apple": 2})


def test_look_up_shows_only_the_nearest_of_many() -> None:
    with pytest.raises(UserError, match=r"Did you mean 'net42'\? Nearest: net42, net") as told:
        look_up("net", "net42x", {f"net{i}": i for i in range(1000)})
    assert len(str(told.value)) < 200


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if isinstance(m, Wiring)])
def test_a_wiring_asks_for_a_third_view_exactly_where_its_name_says_so(name: str) -> None:
    wiring = METHODS[name]
    expected = "augmented" if "augmented-anchor" in name else "original" if "phinet" in name or "/" in name else None
    assert wiring.anchor == expected


def test_every_plan_describes_itself() -> None:
    assert len({plan.describe() for plan in PLANS.values()}) >= len(PLANS) - 2

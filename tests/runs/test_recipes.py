"""Recipes are whole runs, and the paper's is the paper's."""

import pytest

from phinets.config.errors import UserError
from phinets.config.plain import from_plain, to_plain
from phinets.config.run import PretrainConfig
from phinets.runs.recipes import RECIPES, describe_recipe, recipe


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_its_way_through_a_file(name: str) -> None:
    config = recipe(name)
    assert from_plain(PretrainConfig, to_plain(config)) == config
    assert describe_recipe(name)


def test_the_paper_s_recipe_has_the_paper_s_numbers() -> None:
    config = recipe("paper")
    assert (config.backbone, config.epochs, config.batch, config.views) == ("resnet18-cifar", 800, 512, "simsiam-cifar")
    chosen = config.optimization
    assert (chosen.optimizer, chosen.lr, chosen.momentum, chosen.weight_decay) == ("sgd", 0.03, 0.9, 5e-4)
    assert (chosen.warmup_epochs, chosen.schedule, chosen.constant_h) == (10, "cosine", True)
    assert config.peak_lr == pytest.approx(0.06)
    assert config.learner.beta == 0.99
    assert (config.evaluation.num_neighbors, config.evaluation.knn_temperature) == (200, 0.1)


def test_the_main_job_is_x_phinet_on_embedded_data() -> None:
    config = recipe("default")
    assert (config.method, config.data, config.backbone) == ("x-phinet", "shapes", "resnet-tiny")


def test_online_each_image_comes_once_and_looks_come_by_images() -> None:
    config = recipe("online")
    assert (config.method, config.data, config.epochs) == ("x-phinet/cosine", "stream:shapes", 1)
    assert config.source.train_images == 120_000
    assert config.evaluation.eval_at_images == (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


@pytest.mark.parametrize(("name", "epochs", "decay"), [("paper-online", 8, 2e-5), ("paper-online/one-epoch", 1, 1e-4)])
def test_the_paper_s_online_recipes_are_its_cifar10_settings_on_cifar5m(name: str, epochs: int, decay: float) -> None:
    config, offline = recipe(name), recipe("paper")
    assert (config.data, config.epochs, config.batch, config.backbone) == ("cifar5m", epochs, 512, "resnet18-cifar")
    assert config.optimization.weight_decay == decay
    assert config.optimization.lr == 0.03
    assert config.optimization.warmup_epochs * 5_000_000 == offline.optimization.warmup_epochs * 50_000
    assert (config.views, config.learner) == (offline.views, offline.learner)
    assert config.evaluation.eval_at_images[-1] <= epochs * 5_000_000


def test_an_unknown_recipe_offers_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'smoke'"):
        recipe("smok")

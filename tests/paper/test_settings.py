"""Spot cells at the paper's scale, their settings written out by hand from the paper."""

from dataclasses import replace

import pytest

from phinets.config.continual import ContinualConfig
from phinets.config.detection import DetectionConfig
from phinets.config.jobs import ContinualJob, CostJob, DetectionJob, DynamicsJob, Job, PretrainJob, ProbeJob
from phinets.config.run import PretrainConfig
from phinets.paper.plan import Cell
from phinets.paper.scales import scale
from phinets.paper.targets import TARGETS


def cell(target: str, table: str, row: str, column: str, at: str = "paper") -> Cell:
    made = {each.name: each for each in TARGETS[target].tables(scale(at))}
    return made[table].at[row, column]


def probed(found: Cell) -> tuple[PretrainConfig, ProbeJob]:
    job = found.jobs[0]
    assert isinstance(job, ProbeJob)
    assert found.measure == "probe"
    return job.run, job


def streamed(found: Cell) -> ContinualConfig:
    job = found.jobs[0]
    assert isinstance(job, ContinualJob)
    return job.run


def pretrained(found: Cell) -> PretrainConfig:
    job = found.jobs[0]
    assert isinstance(job, PretrainJob)
    return job.run


def test_cifar_10_over_weight_decay() -> None:
    run, job = probed(
        cell("cifar10-weight-decay-variants", "cifar10-weight-decay-variants-1024", "PhiNet (Cos)", "1e-05")
    )
    assert (run.method, run.data, run.backbone, run.epochs, run.batch) == (
        "phinet/cosine", "cifar10", "resnet18-cifar", 800, 1024,
    )  # fmt: skip
    assert (run.optimization.optimizer, run.optimization.momentum, run.optimization.weight_decay) == ("sgd", 0.9, 1e-5)
    assert run.peak_lr == 0.03 * 1024 / 256
    assert (job.probe.epochs, job.probe.rates, job.probe.optimizer) == (100, (30.0,), "sgd")
    run, _ = probed(cell("cifar10-weight-decay-methods", "cifar10-weight-decay-methods", "BYOL", "0"))
    assert (run.method, run.batch, run.optimization.weight_decay, run.learner.beta) == ("byol", 128, 0.0, 0.99)
    large, _ = probed(cell("cifar10-weight-decay-methods", "cifar10-weight-decay-methods-1024", "BYOL", "0"))
    assert large == replace(run, batch=1024), "the two panels differ in their batch alone"


def test_the_ablation() -> None:
    found = cell("cifar10-ablation", "cifar10-ablation", "PhiNet Cos, no SG-2, g", "0.0005")
    run = pretrained(found)
    assert (found.measure, len(found.jobs), run.evaluation.num_neighbors) == ("knn", 3, 200)
    assert (run.method, run.epochs, run.batch, run.peak_lr) == ("phinet/cosine-no-stop-gradient", 800, 512, 0.06)
    layers = [cell("stable-rank", "stable-rank", f"g, layer {number}", "0.001") for number in (1, 2)]
    assert [found.measure for found in layers] == ["stable_rank_g1", "stable_rank_g2"]
    run = pretrained(layers[1])
    assert (run.method, run.optimization.weight_decay) == ("phinet", 1e-3)
    assert "stable-rank" in run.evaluation.health_metrics


def test_moco_has_its_own_head_and_the_others_learning_rate() -> None:
    run = pretrained(cell("moco-weight-decay", "moco-weight-decay", "MoCo", "1.5625e-05"))
    assert (run.method, run.data, run.optimization.lr, run.optimization.weight_decay) == (
        "moco-v2", "cifar10", 0.03, 1.5625e-5,
    )  # fmt: skip
    assert (run.resolved.learner.projector, run.learner.queue, run.learner.temperature) == ((512, 128), 4096, 0.1)


def test_imagenet() -> None:
    run, job = probed(cell("imagenet-weight-decay", "imagenet-weight-decay", "PhiNet (MSE)", "2e-05"))
    assert (run.method, run.data, run.epochs, run.batch) == ("phinet", "imagenet", 100, 512)
    assert (run.backbone, run.source.image_size) == ("resnet50/zero-init-residual", 224)
    assert (run.peak_lr, run.optimization.weight_decay) == (0.1, 2e-5)
    assert (job.probe.epochs, job.probe.batch) == (90, 4096)
    run, job = probed(cell("imagenet-g", "imagenet-g", "linear probe", "PhiNet (g=h)"))
    assert (run.method, run.optimization.weight_decay, job.probe.epochs) == ("phinet/shared-g", 1e-3, 40)


def test_batch_sizes_and_stl_10() -> None:
    knn = cell("batch-size-knn", "batch-size-knn-0.0005", "X-PhiNet (MSE)", "256")
    linear = cell("batch-size-linear", "batch-size-linear-0.0005", "X-PhiNet (MSE)", "256")
    run, _ = probed(linear)
    assert pretrained(knn) == run, "the two tables share their runs"
    assert (run.method, run.batch, run.optimization.weight_decay) == ("x-phinet", 256, 5e-4)
    run, _ = probed(cell("stl10", "stl10-0.001", "SimSiam", "1024"))
    assert (run.data, run.method, run.batch, run.optimization.weight_decay) == ("stl10", "simsiam", 1024, 1e-3)
    early = pretrained(cell("stl10-early", "stl10-early-knn", "SimSiam", "early"))
    assert (early.data, early.batch, early.optimization.weight_decay) == ("stl10", 1024, 1e-4)
    assert early.evaluation.eval_every == run.evaluation.eval_every // 10
    assert (run.backbone, run.source.image_size, run.epochs) == ("resnet18-cifar", 32, 800), "as on CIFAR-10"


def test_cifar_5m() -> None:
    run, _ = probed(cell("cifar5m-weight-decay", "cifar5m-weight-decay", "X-PhiNet (Cos, g=I)", "5e-05"))
    assert (run.method, run.data, run.epochs, run.batch) == ("x-phinet/cosine-identity-g", "cifar5m", 8, 512)
    assert (run.optimization.lr, run.optimization.weight_decay) == (0.03, 5e-5)
    run, _ = probed(cell("cifar5m-one-epoch", "cifar5m-one-epoch", "RM-SimSiam", "0.0001"))
    assert (run.method, run.epochs) == ("rm-simsiam", 1)
    aug = cell("augmented-anchor", "augmented-anchor", "X-PhiNet with Aug (Cos)", "2e-05")
    assert aug.jobs == cell("cifar5m-weight-decay", "cifar5m-weight-decay", aug.row, aug.column).jobs


def test_the_main_table_takes_each_method_at_its_best_weight_decay_and_barlow_twins_at_a_tenth_of_the_rate() -> None:
    decays = {}
    for name in ("BYOL", "SimSiam", "Barlow Twins", "PhiNet (MSE)", "RM-SimSiam", "X-PhiNet (MSE)", "X-PhiNet (Cos)"):
        run, _ = probed(cell("cifar5m", "cifar5m", "CIFAR-5m", name))
        decays[name] = run.optimization.weight_decay
        assert abs(run.optimization.lr - (0.003 if name == "Barlow Twins" else 0.03)) < 1e-15
        stream = streamed(cell("cifar5m", "split-cifar5m", "wd 2e-5 Acc", name))
        assert abs(stream.optimization.lr - (0.003 if name == "Barlow Twins" else 0.03)) < 1e-15
    assert decays.pop("SimSiam") == 1e-5
    assert set(decays.values()) == {2e-5}


def test_streams() -> None:
    found = cell("cifar5m", "split-cifar5m", "wd 5e-4 Fg", "X-PhiNet (Cos)")
    run = streamed(found)
    assert found.measure == "task-knn/fast/forgetting_max"
    assert (run.data, run.epochs_per_task, run.optimization.weight_decay, run.memory.replay) == (
        "cifar5m",
        1,
        5e-4,
        "none",
    )
    assert streamed(cell("cifar5m", "split-cifar5m", "wd 2e-5 Acc", "BYOL")).optimization.weight_decay == 2e-5
    two = streamed(cell("split-cifar5m-two-epochs", "split-cifar5m-two-epochs", "2 epochs Acc", "SimSiam"))
    assert (two.epochs_per_task, two.memory.replay, two.optimization.weight_decay) == (2, "none", 5e-4)
    mixed = streamed(cell("split-cifar5m-mixup", "split-cifar5m-mixup", "2 epochs Fg", "SimSiam"))
    assert (mixed.epochs_per_task, mixed.memory.replay, mixed.memory.buffer) == (2, "mixup", 256)
    once = streamed(cell("split-cifar5m-mixup", "split-cifar5m-mixup", "1 epoch Acc", "SimSiam"))
    assert (once.epochs_per_task, once.memory.replay) == (1, "mixup")


def test_split_cifar_10_and_100() -> None:
    run = streamed(cell("split-cifar", "split-cifar10", "FineTune Acc", "X-PhiNet (g=I, MSE)"))
    assert (run.method, run.data, run.epochs_per_task, run.batch) == ("x-phinet/identity-g", "cifar10", 200, 256)
    assert (run.optimization.lr, run.optimization.weight_decay, run.memory.replay) == (0.03, 5e-4, "none")
    run = streamed(cell("split-cifar", "split-cifar100", "Mixup Fg", "SimSiam"))
    assert (run.data, run.stream.shape, run.memory.replay) == ("cifar100", (20, 5), "mixup")
    run = streamed(cell("ema-beta", "ema-beta", "Acc", "0.997"))
    assert (run.method, run.data, run.learner.beta, run.memory.replay) == (
        "x-phinet/cosine",
        "cifar100",
        0.997,
        "mixup",
    )
    repeated = cell("split-cifar", "split-cifar100", "Mixup Acc", "X-PhiNet (Cos)")
    assert cell("ema-beta", "ema-beta", "Acc", "0.99").jobs == repeated.jobs, "β = .99 is the paper's"


def test_fast_and_slow_are_read_from_one_stream() -> None:
    fast, slow = (cell("fast-slow", "fast-slow", f"X-PhiNet (MSE) {clock}", "3lr") for clock in ("fast", "slow"))
    assert fast.jobs == slow.jobs
    assert (fast.measure, slow.measure) == ("task-linear/fast/average", "task-linear/slow/average")
    assert abs(streamed(fast).optimization.lr - 0.09) < 1e-15


def test_fast_and_slow_are_read_from_one_run_at_the_learning_rates_that_the_paper_tried_on_cifar_5m() -> None:
    for column, rate in (("lr/10", 0.003), ("lr/3", 0.01), ("lr", 0.03)):
        rows = (f"X-PhiNet (Cos) {name}" for name in ("fast", "slow"))
        fast, slow = (cell("fast-slow", "fast-slow-cifar5m", row, column) for row in rows)
        run = pretrained(fast)
        assert fast.jobs == slow.jobs
        assert (fast.measure, slow.measure) == ("linear", "linear_slow")
        assert (run.method, run.data, run.epochs, run.batch) == ("x-phinet/cosine", "cifar5m", 8, 512)
        assert (run.evaluation.encoder, run.optimization.weight_decay) == ("both", 2e-5)
        assert abs(run.optimization.lr - rate) < 1e-15


def transferred(found: Cell) -> tuple[PretrainConfig, DetectionConfig]:
    job = found.jobs[0]
    assert isinstance(job, DetectionJob)
    return job.run, job.detection


def test_detection() -> None:
    run, detection = transferred(cell("voc", "voc-07", "PhiNet (lr .5, wd 1e-5)", "AP50"))
    assert (run.method, run.data, run.epochs, run.batch) == ("phinet", "imagenet", 100, 512)
    assert run.backbone == "resnet50/zero-init-residual"
    assert (run.optimization.lr, run.optimization.weight_decay) == (0.5, 1e-5)
    assert (detection.images.data, detection.images.extra_data) == ("voc:VOCdevkit/VOC2007", ())
    assert (detection.training.batch, detection.training.lr, detection.metric) == (16, 0.02, "voc07")
    alone = detection.training
    run, detection = transferred(cell("voc", "voc-07+12", "X-PhiNet (lr .05, wd 1e-4)", "AP"))
    assert (run.method, run.optimization.lr, run.optimization.weight_decay) == ("x-phinet", 0.05, 1e-4)
    assert (detection.images.data, detection.images.extra_data) == ("voc:VOCdevkit/VOC2007", ("voc:VOCdevkit/VOC2012",))
    both = detection.training
    assert (both.iterations, both.milestones, both.batch) == (24_000, (18_000, 22_000), 16)
    epochs = [training.iterations * 16 / images for training, images in ((alone, 5_011), (both, 16_551))]
    assert abs(epochs[0] - epochs[1]) < 0.01, "as many epochs of fewer images"
    assert [step / alone.iterations for step in alone.milestones] == pytest.approx([3 / 4, 11 / 12], abs=1e-4)


def test_moco_on_imagenet_is_moco_v2_s_own_recipe() -> None:
    run, _ = transferred(cell("voc", "voc-07", "MoCo v2", "AP75"))
    assert (run.method, run.batch, run.optimization.weight_decay) == ("moco-v2", 256, 1e-4)
    assert abs(run.peak_lr - 0.03) < 1e-15
    assert run.backbone == "resnet50", "MoCo's own code does not start residual branches at zero"
    learner = run.learner
    assert (learner.projector, learner.queue, learner.beta, learner.temperature) == ((2048, 128), 65_536, 0.999, 0.2)


def test_a_third_of_other_pictures_stands_for_the_first_year() -> None:
    first, both = (
        transferred(cell("voc", name, "MoCo v2", "AP", "pocket"))[1].images for name in ("voc-07", "voc-07+12")
    )
    assert both == scale("pocket").detection.images
    assert both.train_images is not None
    assert first.train_images == both.train_images // 3
    assert (first.data, first.extra_data, first.test_images) == (both.data, both.extra_data, both.test_images)
    steps = {
        transferred(cell("voc", name, "MoCo v2", "AP", "pocket"))[1].training.iterations
        for name in ("voc-07", "voc-07+12")
    }
    assert steps == {scale("pocket").detection.training.iterations}


def costed(found: Cell) -> CostJob:
    job: Job = found.jobs[0]
    assert isinstance(job, CostJob)
    return job


def test_costs() -> None:
    memory, time = (
        cell("memory", "memory", "batch 1024", "X-PhiNet (MSE)"),
        cell("time", "time", "batch 1024", "SimSiam"),
    )
    assert memory.jobs == time.jobs, "one measurement serves both"
    assert (memory.measure, time.measure) == ("x-phinet/gigabytes", "simsiam/hours_800_epochs")
    assert costed(memory).run.batch == 1024
    assert costed(cell("memory", "memory-ratio", "batch 128", "BYOL")).run.batch == 128
    assert cell("time", "time-ratio", "batch 128", "BYOL").measure == "byol/time_to_simsiam"


def test_dynamics() -> None:
    found = cell("dynamics-flow", "dynamics-flow", "weak", "corrected")
    assert found.measure == "weak/corrected"
    assert found.jobs == (DynamicsJob(statements=("weak",)),)

"""Detectron2, which is not here: its format and its configurations by rule, its weights by equality."""

import ast
import pickle
import pickletools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from phinets.backbones import IMAGENET_STEM
from phinets.backbones.weights import fresh_resnet
from phinets.config.errors import UserError
from phinets.config.export import ExportOptions
from phinets.export.detectron2 import ResNetShape, _shape, config_files
from phinets.export.export import plan_export
from tests.backbones.test_translation import by_replacing
from tests.export.helpers import exported, run_with


@pytest.fixture(scope="module")
def made(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, nn.Module]:
    """A ResNet-50 for Detectron2: the folder with the pickle, its card and its configurations; and the encoder."""
    folder = tmp_path_factory.mktemp("detectron2")
    encoder = run_with("resnet50", run_folder, folder / "run")
    exported(folder / "run", "detectron2", folder / "w.pkl")
    return folder, encoder


def globals_of(path: Path) -> set[str]:
    """What a pickle would import."""
    found, texts_seen = set(), [""]
    for opcode, argument, _ in pickletools.genops(path.read_bytes()):
        if isinstance(argument, str):
            texts_seen.append(argument)
        if opcode.name == "STACK_GLOBAL":
            found.add(".".join(texts_seen[-2:]))
    return found


def test_the_pickle_holds_every_weight_under_detectron2_s_name(made: tuple[Path, nn.Module]) -> None:
    folder, encoder = made
    content = pickle.loads((folder / "w.pkl").read_bytes(), encoding="latin1")
    assert set(content) == {"model", "__author__", "matching_heuristics"}
    assert content["matching_heuristics"] is True
    assert content["__author__"] == "phinets"
    wanted = {by_replacing(name): value.numpy() for name, value in encoder.state_dict().items()}
    assert list(content["model"]) == list(wanted)
    for name, value in content["model"].items():
        assert type(value) is np.ndarray
        assert value.dtype == wanted[name].dtype
        assert value.shape == wanted[name].shape
        assert np.array_equal(value, wanted[name])
        assert value.flags.writeable  # or torch complains when it takes it


def test_the_pickle_asks_for_nothing_that_a_version_of_numpy_has_moved(made: tuple[Path, nn.Module]) -> None:
    assert globals_of(made[0] / "w.pkl") == {"numpy.ndarray", "builtins.bytearray"}


def test_no_head_goes_along(made: tuple[Path, nn.Module]) -> None:
    names = pickle.loads((made[0] / "w.pkl").read_bytes())["model"]
    assert not [name for name in names if not name.startswith(("stem.", "res2.", "res3.", "res4.", "res5."))]


def configured(folder: Path, name: str) -> Any:
    return yaml.safe_load((folder / name).read_text())


def test_the_configurations_have_the_recipe_s_numbers(made: tuple[Path, nn.Module]) -> None:
    folder = made[0] / "w-configs"
    assert {path.name for path in folder.iterdir()} == {
        "Base-RCNN-C4-BN.yaml",
        "pascal_voc_R_50_C4_24k.yaml",
        "train_net.py",
    }
    base, voc = (configured(folder, name) for name in ("Base-RCNN-C4-BN.yaml", "pascal_voc_R_50_C4_24k.yaml"))
    assert base["MODEL"]["ROI_HEADS"]["NAME"] == "Res5ROIHeadsExtraNorm"
    assert base["MODEL"]["BACKBONE"]["FREEZE_AT"] == 0
    assert base["MODEL"]["RESNETS"]["NORM"] == "SyncBN"
    assert base["SOLVER"] == {"IMS_PER_BATCH": 16, "BASE_LR": 0.02}
    assert voc["_BASE_"] == "Base-RCNN-C4-BN.yaml"
    assert voc["SOLVER"] == {"MAX_ITER": 24000, "STEPS": [18000, 22000], "WARMUP_ITERS": 100}
    assert voc["DATASETS"] == {"TRAIN": ["voc_2007_trainval", "voc_2012_trainval"], "TEST": ["voc_2007_test"]}
    assert voc["INPUT"]["FORMAT"] == "RGB"
    assert voc["INPUT"]["MIN_SIZE_TRAIN"] == list(range(480, 801, 32))
    assert voc["INPUT"]["MIN_SIZE_TEST"] == 800
    model = voc["MODEL"]
    assert model["PIXEL_MEAN"] == [123.675, 116.28, 103.53]
    assert model["PIXEL_STD"] == [58.395, 57.12, 57.375]
    assert model["RESNETS"] == {"DEPTH": 50, "NUM_GROUPS": 1, "WIDTH_PER_GROUP": 64, "STRIDE_IN_1X1": False}
    assert model["ROI_HEADS"]["NUM_CLASSES"] == 20
    assert (folder / model["WEIGHTS"]).resolve() == (made[0] / "w.pkl").resolve()


def test_the_script_compiles_and_registers_the_head_that_the_configuration_names(made: tuple[Path, nn.Module]) -> None:
    folder = made[0] / "w-configs"
    text = (folder / "train_net.py").read_text()
    compile(text, "train_net.py", "exec")
    registered = [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(each) == "ROI_HEADS_REGISTRY.register()" for each in node.decorator_list)
    ]
    assert registered == [configured(folder, "Base-RCNN-C4-BN.yaml")["MODEL"]["ROI_HEADS"]["NAME"]]
    card = (made[0] / "w.pkl.md").read_text()
    assert "python train_net.py --config-file pascal_voc_R_50_C4_24k.yaml" in card
    assert "were not run" in card


def test_the_head_puts_one_norm_behind_res5(made: tuple[Path, nn.Module]) -> None:
    """The script's own class, on a stand-in for Detectron2's."""
    script = ast.parse((made[0] / "w-configs" / "train_net.py").read_text())
    [head] = [node for node in script.body if isinstance(node, ast.ClassDef) and node.name.startswith("Res5")]
    head.decorator_list = []

    class Block(nn.Identity):
        out_channels = 2048

    class Res5ROIHeads:
        @classmethod
        def from_config(cls, cfg: Any, input_shape: Any) -> dict[str, Any]:
            return {"res5": nn.Sequential(Block(), Block(), Block()), "pooler": input_shape}

    def get_norm(kind: str, width: int) -> nn.Module:
        assert kind == "SyncBN"
        return nn.BatchNorm2d(width)

    names: dict[str, Any] = {"Res5ROIHeads": Res5ROIHeads, "get_norm": get_norm}
    exec(compile(ast.Module([head], []), "head", "exec"), names)
    cfg = SimpleNamespace(MODEL=SimpleNamespace(RESNETS=SimpleNamespace(NORM="SyncBN")))
    parts = names["Res5ROIHeadsExtraNorm"].from_config(cfg, "shape")
    assert [type(each).__name__ for each in parts["res5"]] == ["Block", "Block", "Block", "BatchNorm2d"]
    assert parts["res5"].norm.num_features == 2048
    assert parts["pooler"] == "shape"


@pytest.mark.parametrize("name", IMAGENET_STEM)
def test_detectron2_is_told_the_shape_that_the_name_says(name: str) -> None:
    depth = int(name.removeprefix("wide_").removeprefix("resne").lstrip("tx")[:3].rstrip("_"))
    groups, _, width = name.partition("_")[2].partition("x") if name.startswith("resnext") else ("1", "", "64")
    wide = 2 if name.startswith("wide") else 1
    assert _shape(fresh_resnet(name, torch.device("meta"))) == ResNetShape(
        depth, int(groups), wide * int(width.rstrip("d")), depth >= 50
    )


def test_every_place_in_the_texts_is_filled() -> None:
    values = {"weights": '"w.pkl"', "mean": [1.0], "std": [2.0], "depth": 101, "groups": 1, "width": 64}
    for name, text in config_files(101, values).items():
        assert "{{" not in text, name
    assert "DEPTH: 101" in config_files(101, values)["pascal_voc_R_101_C4_24k.yaml"]


@pytest.mark.slow
def test_other_statistics_in_pretraining_are_other_statistics_in_detection(run_folder: Path, tmp_path: Path) -> None:
    run_with("resnet50", run_folder, tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("views: simsiam-cifar", "views: ucl"))
    deep = tmp_path / "deep" / "configs"
    plan = plan_export(tmp_path / "run", "detectron2", ExportOptions(configs=deep), tmp_path / "w.pkl")
    voc = yaml.safe_load(plan.artifact.extra_files[deep / "pascal_voc_R_50_C4_24k.yaml"])
    assert voc["MODEL"]["PIXEL_MEAN"] == pytest.approx([255 * value for value in (0.4914, 0.4822, 0.4465)], abs=1e-3)
    assert voc["MODEL"]["WEIGHTS"] == "../../w.pkl"


@pytest.mark.slow
def test_basic_blocks_go_without_a_c4_detector(run_folder: Path, tmp_path: Path) -> None:
    run_with("resnet18", run_folder, tmp_path / "run")
    exported(tmp_path / "run", "detectron2", tmp_path / "w.pkl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "w.pkl", "w.pkl.md"]
    assert "RES2_OUT_CHANNELS = 64" in (tmp_path / "w.pkl.md").read_text()
    with pytest.raises(UserError, match="bottleneck blocks"):
        exported(tmp_path / "run", "detectron2", tmp_path / "v.pkl", configs=tmp_path / "configs")
    assert not (tmp_path / "v.pkl").exists()

"""`phinets.load`: one encoder, the same features whichever way the pictures come."""

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageOps
from safetensors.torch import load_file, save_file
from torch import nn

import phinets
from phinets.config.errors import UserError
from phinets.config.evaluation import EvalOptions
from phinets.config.views import PLANS
from phinets.data.files import decode_square
from phinets.evaluation.encoders import Encoder, load, load_encoder
from phinets.evaluation.setup import eval_setup
from phinets.training.checkpoint import checkpoints
from phinets.views import prepare
from tests.data import making
from tests.export.helpers import said_by
from tests.helpers import assert_features_close


@pytest.fixture(scope="module")
def encoder(run_folder: Path) -> Encoder:
    return phinets.load(str(run_folder), device="cpu")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Pictures of many sizes, modes and formats, one of them sideways, one far larger than the encoder's side."""
    folder = tmp_path_factory.mktemp("photos")
    large, sideways = making.smooth(300, 200), making.picture(40, 20).getexif()
    sideways[0x0112] = 6
    large.save(folder / "a.jpg", quality=95)
    making.picture(40, 20).save(folder / "b.jpg", exif=sideways)
    for mode in ("L", "LA", "RGBA", "P", "1", "I;16"):
        deep = Image.fromarray(making.noise(30, 24).astype(np.uint16) * 256)
        picture = deep if mode == "I;16" else making.picture(24, 30).convert(mode)
        picture.save(folder / f"c-{mode.replace(';', '')}.png")
    making.picture(33, 21).convert("CMYK").save(folder / "d.jpg")
    return sorted(folder.iterdir())


def by_hand(run: Path, paths: list[Path]) -> torch.Tensor:
    """What the run's evaluation computes: the squares that `Files` shows, `prepare` by the run's plan, the backbone."""
    who = load_encoder(run)
    assert who.config is not None
    side = who.config.source.image_size
    images = torch.stack([torch.from_numpy(decode_square(path, side)) for path in paths])
    with torch.no_grad():
        given: torch.Tensor = who.module.eval()(prepare(images, who.config.plan, side))
    return given


def test_pictures_and_files_of_any_size_and_mode_get_the_evaluation_s_features(
    encoder: Encoder, run_folder: Path, photos: list[Path]
) -> None:
    wanted = by_hand(run_folder, photos)
    assert wanted.shape == (len(photos), encoder.num_features)
    assert_features_close(encoder(photos), wanted)
    assert_features_close(encoder([Image.open(path) for path in photos]), wanted)
    assert_features_close(encoder(tuple(map(str, photos))), wanted)
    for path, one in zip(photos, wanted, strict=True):
        assert_features_close(encoder(Image.open(path)), one[None])


def test_a_jpeg_that_was_only_opened_stays_whole_and_one_that_was_drawn_upon_is_seen_as_it_is(
    encoder: Encoder, photos: list[Path]
) -> None:
    open_npz = Image.open(photos[0])
    untouched = encoder(open_npz)
    assert open_npz.size == (300, 200)
    assert np.array_equal(np.asarray(open_npz), np.asarray(Image.open(photos[0])))
    ImageDraw.Draw(open_npz).rectangle((0, 0, 300, 200), fill="red")
    red = encoder(open_npz)
    assert_features_close(red, encoder(Image.new("RGB", (50, 50), "red")))
    assert not torch.allclose(red, untouched, atol=1e-3)
    in_memory = Image.open(io.BytesIO(photos[0].read_bytes()))
    assert_features_close(encoder(in_memory), untouched)


def test_a_picture_that_was_decoded_is_turned_upright_too(encoder: Encoder, photos: list[Path]) -> None:
    sideways = Image.open(photos[1])
    sideways.load()
    upright = ImageOps.exif_transpose(sideways)
    assert upright.size != sideways.size
    assert_features_close(encoder(sideways), encoder(upright))


def test_arrays_give_the_same_with_channels_first_or_last_as_tensors_or_not(encoder: Encoder) -> None:
    first = making.noise(7, 3, 16, 16)
    wanted = encoder(torch.from_numpy(first))
    last = np.ascontiguousarray(first.transpose(0, 2, 3, 1))
    for given in (first, last, torch.from_numpy(last), last[:, ::-1][:, ::-1], list(last), list(first)):
        assert_features_close(encoder(given), wanted)
    assert_features_close(encoder(first[3]), wanted[3:4])
    assert_features_close(encoder(last[3]), wanted[3:4])
    assert_features_close(encoder([Image.fromarray(one) for one in last]), wanted)


@pytest.mark.filterwarnings("error")
def test_an_opened_picture_as_an_array_is_taken_without_a_warning(encoder: Encoder) -> None:
    picture = Image.effect_noise((16, 16), 50).convert("RGB")
    array = np.asarray(picture)
    assert not array.flags.writeable
    assert_features_close(encoder(array), encoder(array.copy()))
    assert_features_close(encoder([array, array]), encoder(np.stack([array, array])))


def test_arrays_of_another_size_are_prepared_as_the_evaluation_prepares_them(
    encoder: Encoder, run_folder: Path
) -> None:
    images = torch.from_numpy(making.noise(3, 3, 40, 24))
    with torch.no_grad():
        wanted = load_encoder(run_folder).module.eval()(prepare(images, encoder.plan, 16))
    assert_features_close(encoder(images), wanted)


@pytest.mark.parametrize("clock", ["fast", "slow"])
def test_the_features_are_those_that_eval_judges(run_folder: Path, clock: Any) -> None:
    who = eval_setup(run_folder, EvalOptions(device="cpu", encoder=clock))
    known, _ = who.feature_sets()
    images = who.train.images.fetch(torch.arange(len(who.train))).images
    assert_features_close(load(run_folder, clock, device="cpu")(images), known.tensors()[0])


def test_many_images_are_shown_some_at_a_time(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    images, sizes = torch.from_numpy(making.noise(23, 3, 16, 16)), list[int]()
    wanted = encoder(images)
    hook = encoder.backbone.register_forward_pre_hook(lambda module, given: sizes.append(len(given[0])))
    monkeypatch.setattr(encoder, "batch_size", 5)
    assert_features_close(encoder(images), wanted)
    assert_features_close(encoder([Image.fromarray(i.permute(1, 2, 0).numpy()) for i in images]), wanted)
    hook.remove()
    assert sizes == [5, 5, 5, 5, 3] * 2


def test_no_more_pixels_are_shown_at_once_than_a_small_memory_holds(
    run_folder: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encoder.batch_size == 512
    assert load(run_folder, device="cpu", image_size=224).batch_size == 83
    monkeypatch.setattr("phinets.evaluation.encoders.PIXELS", 100)
    assert load(run_folder, device="cpu").batch_size == 1


def test_nothing_gives_no_features(encoder: Encoder) -> None:
    empty: tuple[Any, ...] = ([], (), np.empty((0, 3, 16, 16), np.uint8), torch.empty(0, 16, 16, 3, dtype=torch.uint8))
    for nothing in empty:
        assert encoder(nothing).shape == (0, encoder.num_features)


def test_it_is_frozen_whatever_it_is_a_part_of(encoder: Encoder) -> None:
    images = torch.from_numpy(making.noise(4, 3, 16, 16))
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    whole = nn.Sequential(encoder, nn.Linear(encoder.num_features, 2)).train()
    wanted = encoder(images)
    whole(images).sum().backward()
    assert not any(module.training for module in encoder.modules())
    assert not any(weight.requires_grad for weight in encoder.parameters())
    assert_features_close(encoder(images), wanted)
    assert wanted.dtype == torch.float32
    assert not wanted.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


def test_what_it_prepares_is_what_its_backbone_turns_into_features(encoder: Encoder) -> None:
    images = torch.from_numpy(making.noise(4, 3, 20, 30))
    prepared = encoder.prepare(images)
    assert prepared.shape == (4, 3, 16, 16)
    assert_features_close(encoder.backbone(prepared), encoder(images))


def test_in_half_or_double_precision_the_features_are_still_single(run_folder: Path) -> None:
    images = torch.from_numpy(making.noise(4, 3, 16, 16))
    single, double = load(run_folder, device="cpu"), load(run_folder, device="cpu").double()
    assert double(images).dtype == torch.float32
    torch.testing.assert_close(double(images), single(images), rtol=1e-4, atol=1e-5)


def test_a_run_its_checkpoint_and_its_file_give_one_encoder_and_the_slow_one_is_another(run_folder: Path) -> None:
    images = torch.from_numpy(making.noise(4, 3, 16, 16))
    last = checkpoints(run_folder / "checkpoints")[-1][1]
    places = (run_folder, last, run_folder / "backbone.safetensors")
    wanted, *others = (load(place, device="cpu")(images) for place in places)
    for other in others:
        assert_features_close(other, wanted)
    assert not torch.allclose(load(run_folder, "slow", device="cpu")(images), wanted, rtol=1e-3)
    file = load(run_folder / "backbone-slow.safetensors", device="cpu")
    assert_features_close(load(run_folder, encoder="slow", device="cpu")(images), file(images))


def test_an_unfinished_run_gives_its_newest_checkpoint_and_one_without_any_is_told(
    run_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(run_folder, tmp_path / "cut")
    (tmp_path / "cut" / "summary.json").unlink()
    assert "after step 12" in load(tmp_path / "cut", device="cpu").describe()
    shutil.rmtree(tmp_path / "cut" / "checkpoints")
    with pytest.raises(UserError, match="has no checkpoint"):
        load(tmp_path / "cut", device="cpu")


def test_torchvision_s_and_timm_s_weights_are_seen_at_the_size_and_with_the_colors_they_were_made_for(
    tmp_path: Path,
) -> None:
    timm = pytest.importorskip("timm")
    torch.save(phinets.learner("simsiam", backbone="resnet18").f.backbone.state_dict(), tmp_path / "r.pth")
    with pytest.raises(UserError, match="backbone=…"):
        load(tmp_path / "r.pth", device="cpu")
    resnet = load(tmp_path / "r.pth", device="cpu", backbone="resnet18")
    assert (resnet.image_size, resnet.num_features) == (224, 512)
    assert resnet.plan.mean == PLANS["simsiam-cifar"].mean
    torch.save(timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict(), tmp_path / "t.pth")
    vit = load(tmp_path / "t.pth", device="cpu", backbone="timm:vit_tiny_patch16_224")
    assert (vit.image_size, vit.num_features, vit.plan.mean) == (224, 192, (0.5, 0.5, 0.5))
    assert vit(Image.new("RGB", (30, 20))).shape == (1, 192)


def test_it_says_whose_features_it_gives(encoder: Encoder, run_folder: Path) -> None:
    assert encoder.describe() == (
        "fast encoder of x-phinet, resnet-tiny, at the end of its run: 128 features of 16 × 16 pixels"
    )
    assert repr(encoder) == f"<phinets.Encoder: {encoder.describe()}, on cpu>"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.zeros((2, 3, 16, 16), np.float32), "torch.float32, but must be uint8"),
        (np.zeros((2, 3, 16, 16), np.uint32), "uint32, but must be uint8"),
        (np.zeros((5, 16, 16), np.uint8), r"shape \(5, 16, 16\)"),
        (np.zeros((2, 1, 16, 16), np.uint8), r"shape \(2, 1, 16, 16\).*gray channel"),
        ([np.zeros((16, 16, 3), np.uint8), np.zeros((16, 17, 3), np.uint8)], "several shapes"),
        ([np.zeros((16, 16, 3), np.uint8), Image.new("RGB", (8, 8))], "arrays alone"),
        ([1, 2], "the pictures are int"),
        (None, "the pictures are NoneType. Give opened pictures"),
        (Image.new("F", (8, 8)), "picture 0 can't be used: its pixels are floats"),
        ("nowhere.png", "'nowhere.png' can't be used: No such file"),
    ],
)
def test_what_is_no_picture_is_told(encoder: Encoder, given: Any, says: str) -> None:
    with pytest.raises(UserError, match=says):
        encoder(given)


def test_pictures_may_come_from_a_generator(encoder: Encoder, photos: list[Path]) -> None:
    assert_features_close(encoder(path for path in photos), encoder(photos))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"image_size": "64"}, r"image_size is '64' \(str\), but must be a whole number"),
        ({"device": None}, "device is None"),
        ({"backbone": 3}, "backbone is 3"),
        ({"place": None}, "place is None"),
        ({"device": "abacus"}, 'Use device="auto", or cpu'),
        ({"backbone": "resnet18"}, "Leave out backbone=…"),
        ({"place": "bare.pth"}, "with backbone=…: a name"),
        ({"place": "bare.pth", "encoder": "slow", "backbone": "resnet18"}, 'Leave out encoder="slow"'),
    ],
)
def test_arguments_that_load_can_t_use_are_told_by_their_names(
    given: dict[str, Any], says: str, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": torch.zeros(1)}, "bare.pth")
    with pytest.raises(UserError, match=says) as told:
        load(**{"place": run_folder, **given})
    assert "--" not in str(told.value)


def test_an_unknown_encoder_name_is_refused(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="encoder is 'middle'"):
        load(run_folder, "middle")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="holds no run"):
        load(tmp_path)


def test_a_file_whose_image_size_is_no_number_is_told(run_folder: Path, tmp_path: Path) -> None:
    file = run_folder / "backbone.safetensors"
    save_file(load_file(file), tmp_path / "w.safetensors", {**said_by(file), "image_size": "large"})
    with pytest.raises(UserError, match=r"image_size 'large'.*image_size=…"):
        load(tmp_path / "w.safetensors", device="cpu")
    assert load(tmp_path / "w.safetensors", device="cpu", image_size=16).image_size == 16

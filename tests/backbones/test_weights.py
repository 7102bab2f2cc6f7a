"""Weights from files: everything in its place, or an error that names what is not."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import nn

from phinets.backbones import backbone
from phinets.backbones.weights import CHECKSUM, load_weights, read_weights, serialize_weights
from phinets.config.errors import UserError


def other_tiny() -> nn.Module:
    """Weights that no fresh encoder has."""
    module = backbone("resnet-tiny")
    for p in module.parameters():
        nn.init.normal_(p)
    return module


def same(a: nn.Module, tensors: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, tensors[name]) for name, value in a.state_dict().items())


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
@pytest.mark.parametrize("prefix", ["", "module.", "module.encoder."])
def test_a_state_dict_is_found_however_it_was_wrapped(wrapper: str | None, prefix: str, tmp_path: Path) -> None:
    wanted = dict(other_tiny().state_dict())
    inner: Any = {prefix + name: value for name, value in wanted.items()}
    torch.save(inner if wrapper is None else {wrapper: inner, "epoch": 3}, tmp_path / "w.pth")
    encoder = backbone("resnet-tiny")
    load_weights(encoder, read_weights(tmp_path / "w.pth").tensors, "w.pth")
    assert same(encoder, wanted)


def test_torchvision_s_own_state_dict_loads_without_its_classifier(tmp_path: Path) -> None:
    theirs = torchvision.models.resnet18(weights=None)
    torch.save(theirs.state_dict(), tmp_path / "resnet18.pth")
    encoder = backbone("resnet18")
    load_weights(encoder, read_weights(tmp_path / "resnet18.pth").tensors, "resnet18.pth")
    x = torch.randn(2, 3, 64, 64)
    theirs.fc = nn.Identity()
    assert torch.equal(encoder.eval()(x), theirs.eval()(x))


def test_timm_s_own_state_dict_loads_without_its_classifier(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    theirs = timm.create_model("resnet10t", pretrained=False)
    torch.save(theirs.state_dict(), tmp_path / "t.pth")
    encoder = backbone("timm:resnet10t")
    load_weights(encoder, read_weights(tmp_path / "t.pth").tensors, "t.pth")
    assert same(encoder, theirs.state_dict())


def test_safetensors_keep_what_they_say_of_themselves(tmp_path: Path) -> None:
    wanted = dict(other_tiny().state_dict())
    save_file(wanted, tmp_path / "w.safetensors", {"backbone": "resnet-tiny"})
    weights = read_weights(tmp_path / "w.safetensors")
    assert weights.metadata == {"backbone": "resnet-tiny"}
    assert all(torch.equal(weights.tensors[name], value) for name, value in wanted.items())


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: w.pop("conv1.weight"), r"1 missing \(conv1.weight\)"),
        (lambda w: w.update(extra=torch.zeros(1)), r"1 unexpected \(extra\)"),
        (lambda w: w.update({"conv1.weight": torch.zeros(3, 3)}), r"1 of another shape \(conv1.weight: \(3, 3\)"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name_and_change_nothing(change: Any, says: str, prefix: str) -> None:
    tensors = dict(other_tiny().state_dict())
    change(tensors)
    tensors = {prefix + name: value for name, value in tensors.items()}
    encoder = backbone("resnet-tiny")
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    with pytest.raises(UserError, match=says):
        load_weights(encoder, tensors, "w.pth")
    assert same(encoder, before)


def test_two_encoders_in_one_file_are_not_mixed_up() -> None:
    tensors = {f"{who}.{name}": value for who in ("q", "k") for name, value in other_tiny().state_dict().items()}
    with pytest.raises(UserError, match=r"several encoders \(k., q.\)"):
        load_weights(backbone("resnet-tiny"), tensors, "w.pth")


@pytest.mark.parametrize("content", [b"", b"not weights at all", b"\x80\x04\x95not a pickle either"])
@pytest.mark.parametrize("name", ["w.pth", "w.safetensors"])
def test_a_file_that_holds_no_weights_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match="can't be read as weights"):
        read_weights(tmp_path / name)


def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path) -> None:
    torch.save({"conv1.weight": Path("x")}, tmp_path / "w.pth")
    with pytest.raises(UserError, match="can't be read as weights"):
        read_weights(tmp_path / "w.pth")


def test_a_file_without_tensors_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3}, tmp_path / "w.pth")
    with pytest.raises(UserError, match="holds no state dict"):
        read_weights(tmp_path / "w.pth")
    with pytest.raises(UserError, match="there is no file"):
        read_weights(tmp_path / "nothing.pth")


def test_a_larger_encoder_of_the_same_family_does_not_pass_for_a_smaller_one() -> None:
    larger = torchvision.models.resnet34(weights=None).state_dict()
    for prefix in ("", "module."):
        with pytest.raises(UserError, match="unexpected"):
            load_weights(backbone("resnet18"), {prefix + name: value for name, value in larger.items()}, "w.pth")


def test_a_flipped_bit_in_weights_or_metadata_is_refused(tmp_path: Path) -> None:
    path, metadata = tmp_path / "w.safetensors", {"backbone": "resnet-tiny", "image_size": "32"}
    whole = serialize_weights(other_tiny().state_dict(), metadata)
    path.write_bytes(whole)
    assert read_weights(path).metadata == metadata  # the checksum is the file's own
    for place in (len(whole) - 1, len(whole) // 2, whole.index(b'"32"') + 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(UserError, match="Replace it"):
            read_weights(path)


def test_a_file_without_a_checksum_is_read(tmp_path: Path) -> None:
    save_file(dict(other_tiny().state_dict()), tmp_path / "w.safetensors", {"backbone": "resnet-tiny"})
    assert CHECKSUM not in read_weights(tmp_path / "w.safetensors").metadata


def test_the_same_weights_give_the_same_bytes() -> None:
    tensors, metadata = other_tiny().state_dict(), dict.fromkeys("abcdefgh", "x")
    assert len({serialize_weights(tensors, metadata) for _ in range(5)}) == 1

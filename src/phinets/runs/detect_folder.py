"""The folder of a detection transfer: what is in it, claiming it, and reading it again."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from phinets.config.detection import Detection
from phinets.config.detection_record import Arm, DetectionSummary, Precision
from phinets.config.errors import UserError
from phinets.config.plain import differences, from_plain, to_plain
from phinets.runtime.files import is_remnant
from phinets.training.run_folder import CHECKPOINTS, ENVIRONMENT, JOURNAL, SUMMARY, write_text

DETECTION = "detection.yaml"
"""Which encoder, and how; not config.yaml, since it is no pretraining."""
ARMS = ("encoder", "scratch")
RESULT, WEIGHTS, FOUND = "result.json", "detector.safetensors", "found.json"
"""What each arm leaves in its own folder, beside journal and checkpoints; the result last."""
ABOUT = "phinets"
"""The one key of the weights' metadata, with all about them as JSON: several would be written in any order."""
CURVES, PICTURE = "curves.png", "detections.png"
FILES = (DETECTION, ENVIRONMENT, *ARMS, CURVES, PICTURE, SUMMARY)
"""What a transfer leaves, and what overwriting it takes away: nothing else."""
ARM_FILES = (JOURNAL, CHECKPOINTS, FOUND, WEIGHTS, RESULT)


class Begun(NamedTuple):
    """What detection.yaml says."""

    target: Path
    config: Detection
    identity: Mapping[str, Any]
    """What decides what is learned, as it was at the start: settings, pictures and the encoder's weights, plain."""


def require_free(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that holds something, unless it is an older transfer that may go."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"'{folder}' is a file, but a detection transfer needs a folder. Choose another --out.")
    if not folder.exists() or all(map(is_remnant, folder.iterdir())):
        return
    if not (folder / DETECTION).exists():
        raise UserError(
            f"'{folder}' is not empty and holds no detection transfer, so it is left alone. Choose another --out."
        )
    if not overwrite:
        raise UserError(
            f"'{folder}' already holds a detection transfer. Choose another --out, go on with --resume '{folder}', or "
            "say --overwrite to replace it."
        )


def claim(folder: Path, overwrite: bool) -> None:
    """Make the folder, and take an older transfer out of it, detection.yaml last."""
    require_free(folder, overwrite)
    try:
        for old in (folder / name for name in reversed(FILES)):
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{folder}' can't be written: {error.strerror or error}. Choose another --out.") from error


def write_begun(folder: Path, begun: Begun) -> None:
    """detection.yaml: the encoder's place, every field, and check sums of the pictures and of the encoder."""
    plain = {"target": str(begun.target), "detection": to_plain(begun.config), "identity": dict(begun.identity)}
    write_text(folder / DETECTION, yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))


def read_begun(folder: Path) -> Begun:
    """What `write_begun` wrote."""
    path = folder / DETECTION
    if not path.is_file():
        raise UserError(f"'{folder}' holds no detection transfer to go on with: there is no {DETECTION} in it.")
    try:
        plain = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Begun(Path(plain["target"]), from_plain(Detection, plain["detection"]), plain.get("identity") or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, UserError) as error:
        raise UserError(f"'{path}' can't be read: {error}") from error


def require_same(then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to mix what was learned from other settings, pictures or weights into a transfer."""
    changed = differences(then, now)
    if changed:
        listed = ", ".join(f"{key} was {here} and is {there}" for key, (here, there) in changed.items())
        raise UserError(
            f"the settings, the pictures or the encoder have changed since the transfer was begun ({listed}). Put "
            "them back, or begin anew with another --out."
        )


def read_arm(folder: Path) -> Arm | None:
    """The result of an arm that has come to its end, or None."""
    path = folder / RESULT
    return _arm(_json(path), path) if path.exists() else None


def read_summary(folder: Path) -> DetectionSummary | None:
    """The summary of a transfer that has come to its end, or None."""
    path = folder / SUMMARY
    if not path.exists():
        return None
    plain = _json(path)
    try:
        arms = tuple(_arm(arm, path) for arm in plain["arms"])
        return DetectionSummary(**{**plain, "classes": tuple(plain["classes"]), "arms": arms})
    except (TypeError, KeyError) as error:
        raise UserError(f"'{path}' is not a summary of this version of phinets: {error}.") from error


def to_json(value: Any) -> Any:
    """`to_plain` through dicts."""
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    plain = to_plain(value)
    if isinstance(plain, dict):
        return {key: to_json(item) for key, item in plain.items()}
    return [to_json(item) for item in plain] if isinstance(plain, list) else plain


def _arm(plain: dict[str, Any], path: Path) -> Arm:
    try:
        precision = {name: Precision(**of) for name, of in plain["precision"].items()}
        return Arm(**{**plain, "precision": precision})
    except (TypeError, KeyError, AttributeError) as error:
        raise UserError(f"'{path}' is not a result of this version of phinets: {error}.") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' can't be read: {error}.") from error
    if not isinstance(found, dict):
        raise UserError(f"'{path}' should hold one JSON object, not {str(found)[:40]}.")
    return found

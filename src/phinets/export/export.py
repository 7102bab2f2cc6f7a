"""Plan and write an export: everything is checked first, and weights appear only after they were read back."""

from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from phinets.config.errors import UserError, look_up
from phinets.config.export import ExportOptions
from phinets.evaluation.encoders import run_folder_of
from phinets.export import TARGET_MODULES
from phinets.export.artifact import Artifact, Source, Target, load_source
from phinets.export.card import FileRecord, model_card
from phinets.runtime.files import atomic_write, write_text
from phinets.training.run_folder import RUN_FILES


@dataclass(frozen=True, kw_only=True)
class Export:
    """An export that is ready to be written."""

    source: Source
    artifact: Artifact
    out: Path

    @property
    def files(self) -> dict[str, Path]:
        extra = {path.name: path for path in self.artifact.extra_files}
        return {"weights": self.out, "card": card_path(self.out), **extra}

    def write(self) -> FileRecord:
        """Write the weights aside, check them, move them into place; then the card and the extra files."""
        differences: list[float] = []

        def check(temporary: Path) -> str:
            differences.append(self.artifact.check(temporary))
            return self.out.name

        out = atomic_write(self.out, self.artifact.write, rename=check)
        digest, size = sha256(out.read_bytes()).hexdigest(), out.stat().st_size
        record = FileRecord(name=out.name, sha256=digest, size=size, difference=differences[0])
        write_text(card_path(out), model_card(self.source, self.artifact, record))
        for path, text in self.artifact.extra_files.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(
                    f"'{path.parent}' can't be created: {error.strerror}. Choose another --configs."
                ) from error
            write_text(path, text)
        return record


def plan_export(place: Path, to: str, options: ExportOptions, out: Path | None = None) -> Export:
    """What `phinets export` will write.

    Args:
        place: a run folder, one of its checkpoints, or a file of weights.
        to: name of the target, a key of `TARGET_MODULES`.
        options: which encoder, and the options of the target.
        out: the file of weights; None: a name made of the run's, in the working directory.

    Raises:
        UserError: the encoder can't be exported, or an option or name does not fit the target.
    """
    target = find_target(to)
    options.require_supported(to, target.options)
    path = output_path(place, to, options, out)
    _require_apart(place, path)
    source = load_source(place, options)
    _ = source.width  # an error for an encoder that gives no features
    return Export(source=source, artifact=target.prepare(source, options, path), out=path)


def find_target(name: str) -> Target:
    """The target of that name, or an error that offers the nearest."""
    target: Target = import_module(look_up("target", name, TARGET_MODULES)).TARGETS[name]
    return target


def output_path(place: Path, to: str, options: ExportOptions, out: Path | None) -> Path:
    """The file of weights: `out`, if its suffix is one of the target's, or a name made of the run's."""
    suffixes = find_target(to).suffixes
    if out is None:
        slow = "-slow" if options.encoder == "slow" else ""
        target = "" if suffixes[0] == f".{to}" else f"-{to}"
        folder = run_folder_of(place)
        stem = place.stem if folder is None else folder.absolute().name or "run"
        step = f"-{place.name.split('.')[0]}" if folder not in (None, place) else ""
        return Path(f"{stem}{step}{slow}{target}{suffixes[0]}")
    if out.suffix not in suffixes:
        raise UserError(
            f"'{out}' can't be written: for --to {to} its suffix must be {' or '.join(suffixes)}. Choose another "
            f"--out, e.g. '{out.with_suffix(suffixes[0])}'."
        )
    return out


def card_path(out: Path) -> Path:
    """The model card of a file: beside it, its name with .md."""
    return out.with_name(f"{out.name}.md")


def _require_apart(place: Path, out: Path) -> None:
    """Refuse to overwrite the exported weights, or a file of their run."""
    folder = run_folder_of(place)
    protected = [place] if folder is None else [folder / name for name in RUN_FILES]
    if any(out.resolve().is_relative_to(path.resolve()) for path in protected):
        raise UserError(f"'{out}' is the exported file itself, or belongs to its run. Choose another --out.")

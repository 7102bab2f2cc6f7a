"""An export from its order to its files: everything checked first, the weights proved before they take their place."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import file_digest
from importlib import import_module
from pathlib import Path

from phinets.config.errors import UserError, look_up
from phinets.config.export import ExportOptions
from phinets.evaluation.encoders import run_of
from phinets.export import TARGETS
from phinets.export.artifact import Artifact, Target
from phinets.export.card import Proof, card
from phinets.export.source import Source, source_of
from phinets.runtime.files import atomic_write
from phinets.training.run_folder import RUN_FILES, write_text


@dataclass(frozen=True, kw_only=True)
class Export:
    """An export that can be carried out."""

    source: Source
    artifact: Artifact
    out: Path

    @property
    def card(self) -> Path:
        """Where the model card goes."""
        return card_of(self.out)

    def carry_out(self) -> Proof:
        """Write the weights, prove them, and only then let them appear; then the card and what goes beside."""
        differences: list[float] = []

        def proved(aside: Path) -> str:
            differences.append(self.artifact.check(aside))
            return self.out.name

        atomic_write(self.out, self.artifact.fill, named=proved)
        proof = _proof(self.out, differences[0])
        write_text(self.card, card(self.source, self.artifact, proof))
        for path, text in self.artifact.beside.items():
            _make_folder(path.parent)
            write_text(path, text)
        return proof


def export(place: Path, to: str, options: ExportOptions, out: Path | None = None) -> Export:
    """What `phinets export` will write, once everything that can be found wrong is found."""
    target = target_called(to)
    options.require_meant(to, target.options)
    path = out_of(place, to, options, out)
    _require_apart(place, path)
    source = source_of(place, options)
    _ = source.width  # says at once what is wrong with an encoder that gives no features
    return Export(source=source, artifact=target.make(source, options, path), out=path)


def target_called(name: str) -> Target:
    """The target of that name, or an error that offers the nearest."""
    found: Target = import_module(look_up("target", name, TARGETS)).TARGET
    return found


def out_of(place: Path, to: str, options: ExportOptions, out: Path | None) -> Path:
    """The file of weights: `out`, whose ending must be one of the target's, or a name made of the run's, here."""
    endings = target_called(to).endings
    if out is None:
        slow = "-slow" if options.encoder == "slow" else ""
        said = "" if endings[0] == f".{to}" else f"-{to}"
        return Path(f"{_stem(place)}{slow}{said}{endings[0]}")
    if out.suffix not in endings:
        raise UserError(
            f"'{out}' can't be written: for --to {to} its ending must be {' or '.join(endings)}. Choose another --out, "
            f"e.g. '{out.with_suffix(endings[0])}'."
        )
    return out


def card_of(out: Path) -> Path:
    """The model card of a file: beside it, its name with .md."""
    return out.with_name(f"{out.name}.md")


def _stem(place: Path) -> str:
    folder = run_of(place)
    if folder is None:
        return place.stem
    name = folder.absolute().name or "run"
    return name if place == folder else f"{name}-{place.name.split('.')[0]}"


def _require_apart(place: Path, out: Path) -> None:
    """Refuse to write over what is exported, or over a file of its run."""
    folder = run_of(place)
    kept = [place] if folder is None else [folder / name for name in RUN_FILES]
    if any(out.resolve().is_relative_to(path.resolve()) for path in kept):
        raise UserError(f"'{out}' is what would be exported, or belongs to its run. Choose another --out.")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{folder}' can't be made: {error.strerror or error}. Choose another --configs.") from error


def _proof(path: Path, difference: float) -> Proof:
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return Proof(name=path.name, sha256=digest, size=path.stat().st_size, difference=difference)


def written(export: Export) -> Mapping[str, Path]:
    """Every file of an export by what it is."""
    return {"weights": export.out, "card": export.card, **{path.name: path for path in export.artifact.beside}}

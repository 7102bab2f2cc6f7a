"""`phinets export`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from phinets.cli.command import Outcome, parse_words, show_lines
from phinets.cli.output import require_free
from phinets.config.errors import UserError, look_up
from phinets.config.export import ExportOptions
from phinets.export import TARGET_MODULES
from phinets.runtime.process import exit_on_interrupt


@dataclass(frozen=True)
class Options:
    """Export an encoder to another library: weights that load strictly there, checked, with a model card.

    Example: phinets export runs/first --to torchvision --out resnet18.pth
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, one of its checkpoints, or a file of weights (.safetensors, or a state dict)."""
    to: Annotated[str, tyro.conf.arg(metavar="|".join(TARGET_MODULES))]
    """The target: a state dict, phinets' own weights, a graph for onnxruntime, or a pickle with its configs."""
    out: Path | None = None
    """The file of weights; the card goes beside it. Unset: the run's name and the target's, here."""
    export: ExportOptions = field(default_factory=ExportOptions)
    overwrite: bool = False
    """Overwrite existing files."""
    json: bool = False
    """Print one JSON document: the files, the checksum, and the difference of features."""

    def __post_init__(self) -> None:
        look_up("target", self.to, TARGET_MODULES)


def command(words: list[str]) -> Outcome:
    options = parse_words(Options, "export", words)
    with exit_on_interrupt():  # torch is imported here, after --help and bad options
        from phinets.export.export import card_path, output_path, plan_export

    out = output_path(options.target, options.to, options.export, options.out)
    for path in (out, card_path(out)):
        require_free(path, options.overwrite)
    plan = plan_export(options.target, options.to, options.export, out)
    for path in plan.artifact.extra_files:
        if path.parent.is_dir():
            require_free(path, options.overwrite)
        elif path.parent.exists():
            raise UserError(f"'{path.parent}' is a file, but the configs need a folder. Choose another --configs.")
    record = plan.write()
    files = {name: str(path) for name, path in plan.files.items()}
    source, artifact = plan.source, plan.artifact
    text = f"{source.loaded_encoder.description}, for {artifact.description}; features equal to {record.difference:.1e}"
    document = {
        "target": options.to,
        "description": artifact.description,
        "encoder": source.loaded_encoder.encoder,
        "backbone": source.loaded_encoder.backbone,
        "weights_from": source.describe_step(),
        "image_size": source.size,
        "sha256": record.sha256,
        "difference": record.difference,
        "files": files,
    }
    return Outcome(document, show_lines(*files.values(), text))

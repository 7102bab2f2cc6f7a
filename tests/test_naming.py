"""Modules and public names are nouns, verbs or adjectives: a bare participle names nothing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "phinets"

IRREGULAR = {
    "begun", "built", "chosen", "done", "drawn", "fed", "found", "given", "gone", "held", "kept", "known", "laid",
    "learned", "left", "lost", "made", "meant", "met", "said", "seen", "sent", "shown", "spoken", "taken", "thought",
    "told", "understood", "worn", "written",
}  # fmt: skip
WORDS = {
    "distributed", "embed", "embedding", "encoding", "feed", "fixed", "forgetting", "fused", "need", "nested",
    "padding", "rendering", "resampling", "rounding", "seed", "setting", "shared", "speed", "string", "timing",
    "training", "unseen", "untrained", "warning", "weighted", "wiring",
}  # fmt: skip
"""Nouns and adjectives that only look like participles."""


def names(path: Path) -> Iterator[str]:
    """The module's name and the public functions, classes and values that it defines."""
    yield path.stem
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def is_bare_participle(name: str) -> bool:
    """Whether the name is one word, and that a participle or gerund."""
    word = name.lower()
    if "_" in name or re.search("[a-z][A-Z]", name) or word in WORDS:
        return False
    return word in IRREGULAR or (len(word) > 4 and word.endswith(("ed", "ing")))


def test_participles_are_told_from_nouns_and_verbs() -> None:
    assert all(map(is_bare_participle, ("found", "Matched", "matched", "GATHERED", "writing", "drawn")))
    assert not any(map(is_bare_participle, ("seed", "embedding", "load_embedding", "FineTuning", "_found", "match")))


def test_no_module_or_public_name_is_a_bare_participle() -> None:
    paths = sorted(SOURCE.rglob("*.py"))
    violations = [f"{path.relative_to(SOURCE)}: {n}" for path in paths for n in names(path) if is_bare_participle(n)]
    assert not violations, "\n".join(violations)

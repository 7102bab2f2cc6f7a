"""The documentation names only commands, options, modules and files that exist."""

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tyro
import yaml

from phinets.cli.main import COMMANDS, main
from phinets.config.plain import to_plain
from phinets.runs.recipes import benchmark, recipe

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "Makefile", *sorted((ROOT / "docs").glob("*.md"))]
OTHER_TOOLS = {"--nproc-per-node", "--nnodes", "--rdzv-endpoint", "--json", "--help", "--version"}
"""Options of torchrun, and those that every command has."""
README_LINES = 160
DYNAMICS = ("equilibria", "bifurcations", "basins")
"""Actions that stand for `phinets dynamics …` in the text."""


def code_of(page: Path) -> str:
    """The code on a page: its blocks, and what stands in backticks with line breaks joined."""
    text = page.read_text()
    if page.suffix != ".md":
        return text
    blocks = re.findall(r"^```.*?$(.*?)^```", text, flags=re.M | re.S)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    inline = [re.sub(r"\s+", " ", words) for words in re.findall(r"`([^`]+)`", rest)]
    return "\n".join([*blocks, *inline])


def commands_in(code: str) -> Iterator[list[str]]:
    """The words after `phinets` of every command line."""
    for line in code.splitlines():
        for part in re.split(r"&&|\||;", line.partition(" #")[0]):
            words = re.search(r"(?:^|\s|-m )phinets ([a-z].*)$", part.strip())
            if words and "=" not in part.split("phinets")[0]:
                with suppress(ValueError):
                    yield shlex.split(words[1])


@cache
def help_options(command: tuple[str, ...]) -> frozenset[str]:
    """The options in a command's help; the empty set where it has actions."""
    output = io.StringIO()
    with redirect_stdout(output), suppress(SystemExit):
        main([*command, "--help"])
    return frozenset(re.findall(r"--[a-z0-9][a-z0-9-]*", output.getvalue()))


def options_of(words: list[str]) -> frozenset[str]:
    """The options of a command line's command and of its action; of every action where it names none."""
    action = [words[1]] if len(words) > 1 and re.fullmatch(r"[a-z-]+", words[1]) else []
    own = help_options((words[0], *action))
    everywhere = (
        [help_options(("dynamics", name)) for name in DYNAMICS] if words[0] == "dynamics" and not action else []
    )
    return own.union(help_options((words[0],)), *everywhere)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_every_command_line_uses_existing_options() -> None:
    faults: set[str] = set()
    total = 0
    for page in PAGES:
        for words in commands_in(code_of(page)):
            total += 1
            if words[0] not in COMMANDS:
                faults.add(f"{page.name}: there is no command {words[0]}")
                continue
            options = {re.sub(r"=.*", "", word) for word in words if re.match(r"--[a-z]", word)}
            missing = options - options_of(words) - OTHER_TOOLS
            faults |= {f"{page.name}: phinets {words[0]} has no {option}" for option in missing}
    assert total > 40
    assert not faults, "\n".join(sorted(faults))


def test_every_option_in_the_text_exists_somewhere() -> None:
    actions = {tuple(words[:2]) for page in PAGES for words in commands_in(code_of(page)) if len(words) > 1}
    lines = [(name,) for name in COMMANDS] + [pair for pair in actions if re.fullmatch(r"[a-z-]+", pair[1])]
    every = frozenset().union(*(help_options(line) for line in lines)) | OTHER_TOOLS
    faults = {
        f"{page.name}: {option}"
        for page in PAGES
        if page.suffix == ".md"
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]", page.read_text())
        if option not in every
    }
    assert not faults, "\n".join(sorted(faults))


class ParsedError(BaseException):
    """A command line was parsed, and nothing was run."""


def parsing_fault(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str | None:
    """What is wrong with a command line, or None where it can be parsed; the command itself does not run."""
    parse: Any = tyro.cli

    def parse_only(*args: Any, **options: Any) -> None:
        parse(*args, **options)
        raise ParsedError

    error = io.StringIO()
    with monkeypatch.context() as patch, redirect_stderr(error):
        patch.setattr(tyro, "cli", parse_only)
        try:
            main(words)
        except ParsedError:
            return None
        except SystemExit as end:
            return error.getvalue() if end.code else None
    return None


def blocks_of(page: Path) -> str:
    """The code blocks of a page, with continued lines joined and values for what an ellipsis leaves out."""
    blocks = re.findall(r"^```.*?$(.*?)^```", page.read_text(), flags=re.M | re.S)
    code = "\n".join(blocks).replace("\\\n", " ")
    return re.sub(r"--address …", "--address x", code).replace("…", "")


def examples_of(command: str) -> Iterator[str]:
    """The examples in the help of a command and of its actions."""
    output = io.StringIO()
    with redirect_stdout(output), suppress(SystemExit):
        main([command, "--help"])
    text = output.getvalue()
    for action in re.findall(r"^  ([a-z-]+)  ", text, re.M) if "ACTION" in text.partition("\n")[0] else ():
        with redirect_stdout(output), suppress(SystemExit):
            main([command, action, "--help"])
    for line in re.findall(r"Example: (phinets [^│\n]*)", output.getvalue()):
        yield from line.split("Example:")  # a narrow help puts two on one line


def start_of(words: list[str]) -> list[str]:
    """Write the config of the run that a command line resumes, appends to or repeats; detection starts anew."""
    if words[0] == "detect":
        return [word for word in words if word != "--resume"]
    for option, place in pairwise(words):
        if option in ("--resume", "--append", "--config"):
            file = Path(place) / "config.yaml" if option != "--config" else Path(place)
            file.parent.mkdir(parents=True, exist_ok=True)
            config = benchmark("split-shapes") if words[0] == "continual" else recipe("default")
            file.write_text(yaml.safe_dump(to_plain(config)))
    return words


def test_every_command_line_can_be_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of code are typed as they stand, so their lines must be whole; so must the examples of every help."""
    lines = [(page.name, words) for page in PAGES if page.suffix == ".md" for words in commands_in(blocks_of(page))]
    examples = [(f"phinets {name} --help", line) for name in COMMANDS for line in examples_of(name)]
    lines += [(place, words) for place, line in examples for words in commands_in(line)]
    assert len(lines) > 80
    faults = []
    for place, words in lines:
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            words = start_of(words)
            fault = parsing_fault(words, monkeypatch)
        if fault:
            faults.append(f"{place}: phinets {shlex.join(words)}: {fault}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", ["training.md", "dynamics.md"])
def test_the_blocks_of_python_run(name: str) -> None:
    blocks = re.findall(r"^```python$(.*?)^```", (ROOT / "docs" / name).read_text(), flags=re.M | re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), {})


@pytest.mark.slow
def test_the_readme_s_training_loop_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    blocks = re.findall(r"^```python$(.*?)^```", (ROOT / "README.md").read_text(), flags=re.M | re.S)
    (loop,) = [block for block in blocks if "backward()" in block]
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(compile(loop, "README.md", "exec"), names)
    assert torch.isfinite(names["losses"].total)
    assert "learner(views)" in loop


def exists(dotted: str) -> bool:
    """Whether a dotted name can be imported, or is an attribute of what can."""
    names = dotted.split(".")
    for n in range(len(names), 0, -1):
        try:
            value = import_module(".".join(names[:n]))
        except ModuleNotFoundError:
            continue
        for name in names[n:]:
            if not hasattr(value, name):
                return False
            value = getattr(value, name)
        return True
    return False


def test_every_module_and_name_exists() -> None:
    faults = {
        f"{page.name}: {dotted}"
        for page in PAGES
        for dotted in re.findall(r"(?<![\w./-])phinets(?:\.[A-Za-z_]\w*)+", code_of(page))
        if not exists(dotted)
    }
    assert not faults, "\n".join(sorted(faults))


def test_the_changelog_s_new_modules_exist() -> None:
    section = (ROOT / "CHANGELOG.md").read_text().partition("Modules, without")[2].partition("## 0.1.0")[0]
    rows = re.findall(r"^\| `(.*)` \| `([\w.]+)` \|$", section, flags=re.M)
    assert len(rows) > 50
    assert [new for _, new in rows if not exists(f"phinets.{new}")] == []


def source_text(path: str) -> str:
    """A file's text; empty where there is no such file."""
    file = ROOT / path
    return file.read_text() if file.is_file() else ""


def test_every_name_is_in_the_file_that_is_named_beside_it() -> None:
    """`NAME` (`path`), `NAME` in `path`."""
    pairs = [
        (page.name, name, path)
        for page in PAGES
        for name, path in re.findall(r"`(\w+)`[,;]?\s(?:\(|in\s)`(src/phinets/[\w/]+\.py)`", page.read_text())
    ]
    faults = [f"{page}: {path} has no {name}" for page, name, path in pairs if name not in source_text(path)]
    assert len(pairs) > 20
    assert not faults, "\n".join(faults)


def test_every_path_exists() -> None:
    pattern = r"(?<![\w/.])(?:src/phinets|tests|benchmarks|examples|docs)/[\w./-]*\w"
    faults = {
        f"{page.name}: {path}"
        for page in PAGES
        for path in re.findall(pattern, page.read_text())
        if not (ROOT / path).exists() and not list(ROOT.glob(f"{path}*")) and not re.search(r"/(mine|NAME)\.py$", path)
    }
    assert not faults, "\n".join(sorted(faults))


def test_every_link_leads_somewhere() -> None:
    faults = {
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    }
    assert not faults, "\n".join(sorted(faults))


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES

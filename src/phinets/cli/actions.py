"""Commands that have actions: `phinets data check`, `phinets eval knn`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from phinets.cli.outcome import Outcome
from phinets.config.errors import look_up


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a command."""

    what: str
    """A line for the help."""
    run: Callable[[list[str]], Outcome]
    """From the words after the action's name to its result."""


def action_of(command: str, actions: Mapping[str, Action], example: str, words: list[str]) -> Outcome:
    """The result of the action that the first word names; without one, or for --help, what there is."""
    if not words or words[0] in ("-h", "--help"):
        print(_help(command, actions, example))
        raise SystemExit(0)
    return look_up(f"action of `phinets {command}`", words[0], actions).run(words[1:])


def in_module(name: str) -> Callable[[list[str]], Outcome]:
    """The `command` of a module that is imported when it is first needed."""

    def run(words: list[str]) -> Outcome:
        outcome: Outcome = import_module(name).command(words)
        return outcome

    return run


def _help(command: str, actions: Mapping[str, Action], example: str) -> str:
    wide = max(len(name) for name in actions) + 3
    listed = "\n".join(f"  {name:<{wide}}{action.what}" for name, action in actions.items())
    told = "Every action has --help with an example, and --json, which prints one JSON document."
    return f"phinets {command} ACTION [options]\n\n{listed}\n\n{told}\n\nExample: {example}\n"

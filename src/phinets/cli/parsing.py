"""From words to options."""

import io
from contextlib import redirect_stderr
from typing import Any, TypeVar, cast

import tyro

from phinets.config.errors import UserError

T = TypeVar("T")


def parse_words(options: type[T], command: str, words: list[str], default: T | None = None) -> T:
    """The options of a command, on top of a default; nested sections give their options without a prefix.

    The parser shows a value that a dataclass refuses in a box of its own; our errors come out of it unchanged.
    """
    shown = io.StringIO()
    known = {} if default is None else {"default": default}
    flat = (tyro.conf.OmitArgPrefixes,)
    try:
        with redirect_stderr(shown):
            parse: Any = tyro.cli  # its overloads have no word for a type variable
            return cast(T, parse(options, prog=f"phinets {command}", args=words, config=flat, **known))
    except SystemExit as left:
        ours = _behind(left)
        if ours is not None:
            raise ours from None
        if left.code:
            raise UserError(_paragraph(shown.getvalue())) from None
        raise


def _paragraph(boxed: str) -> str:
    """The parser's words without the box around them."""
    lines = (line.strip("│╭╮╰╯─-|+ ") for line in boxed.splitlines())
    return " ".join(line for line in lines if line)


def _behind(error: BaseException | None) -> UserError | None:
    """The error of ours that led to this one, if there is one."""
    while error is not None and not isinstance(error, UserError):
        error = error.__cause__ or error.__context__
    return error

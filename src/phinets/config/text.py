"""Text from data, such as names of classes and files, that is safe to show."""

_CONTROLS = [code for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"]
_DIRECTIONS_AND_SURROGATES = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000))
_ESCAPES = {code: f"\\x{code:02x}" for code in _CONTROLS}
_ESCAPES |= {code: f"\\u{code:04x}" for code in _DIRECTIONS_AND_SURROGATES}


def printable(text: str) -> str:
    """The text with control characters, which terminals obey and SVG forbids, written as \\x1b; tabs and lines stay."""
    return text.translate(_ESCAPES)

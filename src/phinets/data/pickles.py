"""Pickles that hold nothing but arrays, numbers and text. Whatever else a pickle asks for is refused, not run."""

import io
import pickle
from typing import Any, NoReturn

import numpy as np

from phinets.config.errors import UserError


def _to_bytes(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes in an old pickle."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in the encoding {encoding!r} is not expected")
    return text.encode("latin1")


_MAKE_ARRAY = np.empty(0).__reduce__()[0]  # numpy's own, which has moved between modules
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _MAKE_ARRAY,
    ("numpy._core.multiarray", "_reconstruct"): _MAKE_ARRAY,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _to_bytes,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which an array does not need")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it points to something outside itself")


def read_pickle(content: bytes, where: str) -> dict[str, Any]:
    """The dict that a pickle of Python 2 or 3 holds."""
    try:
        value = _Reader(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a damaged pickle may raise anything
        raise UserError(f"'{where}' can't be read: {error}. Remove it and fetch it again.") from error
    if not isinstance(value, dict):
        raise UserError(f"'{where}' holds a {type(value).__name__}, not a dict. Remove it and fetch it again.")
    return value

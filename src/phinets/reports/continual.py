def pictures_of(r: object) -> dict[str, bytes]:
    return {"matrix.png": b"", "tasks.png": b"", "fast_and_slow.png": b""}


def matrix_table(r: object, t: object) -> str:
    return str(r)

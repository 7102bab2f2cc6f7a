"""The names of `import phinets`: listed, importable and documented."""

import phinets


def test_dir_lists_the_public_names_and_nothing_else() -> None:
    assert dir(phinets) == sorted(phinets.__all__)
    assert all(hasattr(phinets, name) for name in dir(phinets))


def test_every_public_function_documents_its_arguments_result_and_errors() -> None:
    functions = [getattr(phinets, name) for name in phinets.__all__ if name.islower()]
    missing = [
        f"{function.__name__}: {section}"
        for function in functions
        for section in ("Args:", "Returns:", "Raises:")
        if section not in (function.__doc__ or "")
    ]
    assert len(functions) >= 4
    assert not missing, missing

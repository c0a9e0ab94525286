"""Fingerprints of a data set's questions and golds, and files that hold the same otherwise."""

from medexam.measures import find_benchmark
from medexam.specs import DatasetSpec, validate


def prints_of(name, path, **settings) -> tuple[str, str]:
    """Of the questions, and of the golds."""
    spec = validate(DatasetSpec, {"name": name, "path": path, **settings})
    found = find_benchmark(spec).load(spec)
    return found.fingerprint, found.golds_fingerprint


def are_same(one, two) -> tuple[bool, ...]:
    """Whether the questions are the same, and whether the golds are."""
    return tuple(first == second for first, second in zip(one, two, strict=True))


def end_lines_with_crlf(path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def reordered(value):
    """The same JSON, the keys of its objects in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(each) for each in value] if isinstance(value, list) else value

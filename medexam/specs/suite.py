"""A suite: several experiments that are planned, run and ranked together, as a YAML file lists them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.specs.loading import SpecSource, load_document


def load_entries(
    specs: Sequence[SpecSource], read: Callable[[SpecSource], dict[str, Any]] = load_document
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Load specs by `read`, and those that a suite among them lists, each with what the suite sets in it.

    Raises `SpecError` as `read` does.
    """
    entries: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for spec in specs:
        document = read(spec)
        folder = Path(spec).parent if isinstance(spec, str | Path) else Path()
        entries += _expand(document, folder, read) if "suite" in document else [(document, {})]
    return entries


def _expand(
    document: Mapping[str, Any], folder: Path, read: Callable[[SpecSource], dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the experiments of a suite: every key of it but `suite`, `name` and `description` is set in each of them.

    An entry is a spec's name or path, or a mapping with that under `spec` and keys that are set in this one.
    """
    members = document["suite"]
    if not isinstance(members, list) or not members:
        raise SpecError(f"suite: expected a list of specs, found {members!r}")
    shared = {key: value for key, value in document.items() if key not in ("suite", "name", "description")}
    for member in members:
        settings = dict(member) if isinstance(member, Mapping) else {"spec": member}
        name = settings.pop("spec", None)
        if not isinstance(name, str):
            raise SpecError(f"suite: {member!r} names no spec: give its name or path, alone or under `spec`")
        entry = read(str(folder / name) if (folder / name).is_file() else name)
        if "suite" in entry:
            raise SpecError(f"suite: {name} is a suite itself: list its specs instead")
        settings = {**shared, **settings}
        # A whole part replaces the spec's, whichever it names.
        parts = {part: settings.pop(part) for part in ("program", "model") if part in settings}
        if isinstance(axes := entry.get("matrix"), Mapping):
            entry["matrix"] = {axis: values for axis, values in axes.items() if axis not in parts}
        yield {**entry, **parts}, settings

"""Specs from YAML files and from the command line's `--set key=value`."""

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.inputs import UnreadableError, decode, read_regular
from medexam.specs.base import Spec
from medexam.specs.catalogue import CATALOGUE, find_added
from medexam.specs.strict_yaml import parse_yaml
from medexam.text import nearest

SpecSource = str | Path | Mapping[str, Any] | Spec
"""A YAML file, the name of a shipped experiment or of a data set, a document, or a spec that was built in Python."""
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")
"""Endings of files that hold questions of one's own."""
_BESIDE = re.compile(r"(?![/~])[^:]+\.py:[\w.]+")
_LIBRARY = resources.files("medexam") / "experiments" / "library"


def library_names() -> list[str]:
    """List the names of the experiments that ship with this package and with installed ones."""
    names = {item.name.removesuffix(".yaml") for item in _LIBRARY.iterdir() if item.name.endswith(".yaml")}
    return sorted(names | find_added("experiments").keys())


def load_document(spec: SpecSource) -> dict[str, Any]:
    """Load the document of a spec; a data set's name is an experiment of that name with nothing else set.

    Raises `SpecError` when there is no such file, it is not YAML, or it is no mapping.
    """
    if isinstance(spec, Spec):
        return spec.model_dump(mode="json")
    if isinstance(spec, Mapping):
        return dict(spec)
    name, path = str(spec), Path(spec)
    shipped = _find_shipped(name) if name == path.stem else None
    if shipped is None and name in CATALOGUE and not path.exists():
        return {"name": name, "dataset": {"name": name}}
    where, folder = (name, path.parent) if shipped is None else (f"shipped experiment {name}", Path())
    text = _read_text(path) if shipped is None else shipped.read_text(encoding="utf-8")
    document = parse_yaml(text, where)
    if not isinstance(document, Mapping):
        detail = "the file is empty" if document is None else "this is none"
        raise SpecError(
            f"{where}: a spec is a mapping of keys to values, and {detail}; `medexam init` writes an example"
        )
    tree = {key: _placed(value, folder) for key, value in document.items()}
    dataset = tree.get("dataset")
    if isinstance(dataset, dict) and dataset.get("kind") is not None:
        for part in (dataset, dataset.get("answers")):
            # One's own questions and their key: from the working folder, else from the spec's.
            if isinstance(part, dict) and isinstance(part.get("path"), str):
                own = Path(part["path"]).expanduser()
                part["path"] = str((own if own.exists() or not (folder / own).exists() else folder / own).absolute())
    return tree


def _find_shipped(name: str) -> Traversable | None:
    """Find the file of a suite or an experiment of this package or an installed one; None if there is none."""
    files = (_LIBRARY / "suites" / f"{name}.yaml", _LIBRARY / f"{name}.yaml")
    return next((file for file in files if file.is_file()), None) or find_added("experiments").get(name)


def _read_text(path: Path) -> str:
    if path.suffix.lower() in _TABLES and path.exists():
        raise SpecError(
            f"{path} is a table of questions, not a spec: `medexam init {path}` writes a spec that asks them"
        )
    if path.is_dir():
        raise SpecError(f"{path} is a folder and no spec: name a file in it; `medexam report {path}` shows runs")
    try:
        return decode(read_regular(path))
    except FileNotFoundError:
        raise SpecError(_unknown_spec(path)) from None
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error}") from None
    except UnreadableError as error:
        raise SpecError(f"{path} {error}: save it as UTF-8") from None


def _unknown_spec(path: Path) -> str:
    """Return what is said of a spec that is not there: the nearest names, or all of them if none is near."""
    suites = [item.name.removesuffix(".yaml") for item in (_LIBRARY / "suites").iterdir() if item.name[0] != "."]
    shipped = [*library_names(), *sorted(suites)]
    neighbours = [str(other) for ending in ("*.yaml", "*.yml") for other in sorted(path.parent.glob(ending))]
    if suggestion := nearest(str(path), [*neighbours, *shipped, *CATALOGUE]):
        return f"no spec {path}: did you mean {suggestion}?"
    if path.suffix in (".yaml", ".yml"):
        return f"no spec {path}: there is no such file; `medexam init {path}` writes one to start from"
    return f"no spec {path}: give a YAML file, a data set's name, or a shipped experiment ({', '.join(shipped)})"


def _placed(value: Any, folder: Path, key: str = "") -> Any:
    """Return the value with the whole paths of files beside the spec: of every `file.py:Name`, and of strategies."""
    if isinstance(value, Mapping):
        return {name: _placed(child, folder, name) for name, child in value.items()}
    if isinstance(value, list):
        return [_placed(child, folder, key) for child in value]
    is_strategy = key in ("program", "kind", "use") and isinstance(value, str) and value.endswith(".yaml")
    if is_strategy or (isinstance(value, str) and _BESIDE.fullmatch(value)):
        return str((folder / Path(value).expanduser()).absolute())
    return value


def parse_overrides(settings: Iterable[str]) -> dict[str, Any]:
    """Parse `["dataset.limit=5", ...]` as dotted keys and YAML values; a later setting wins."""
    overrides: dict[str, Any] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path.strip():
            raise SpecError(f"--set {setting}: write it as key=value, such as --set dataset.language=es")
        key, text = path.strip(), text.strip()
        # A signature's types and commas are no YAML.
        is_text = key.endswith(".signature") and "->" in text and text[0] not in "'\"[{"
        overrides[key] = text if is_text else parse_yaml(text, f"--set {key}")
    return overrides

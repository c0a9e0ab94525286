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

_STRATEGIES = ("program", "kind", "use")
"""Keys that may name the file of a strategy."""
_BESIDE = re.compile(r"(?![/~])[^:]+\.py:[\w.]+")
SpecSource = str | Path | Mapping[str, Any] | Spec
"""A YAML file, the name of a shipped experiment or of a data set, a document, or a spec that was built in Python."""
TABLES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")
"""Endings of files that hold questions of one's own."""
SUITES = "suites"
"""Folder of the suites that ship, in `LIBRARY`."""
EXPERIMENTS = "experiments"
"""Folder of the experiments that a package adds."""
LIBRARY = resources.files("medexam") / "experiments" / "library"


def library_names() -> list[str]:
    """List the names of the experiments that ship with this package and with installed ones."""
    names = {item.name.removesuffix(".yaml") for item in LIBRARY.iterdir() if item.name.endswith(".yaml")}
    return sorted(names | find_added(EXPERIMENTS).keys())


def suite_names() -> list[str]:
    """List the names of the suites that ship with the package."""
    return sorted(item.name.removesuffix(".yaml") for item in (LIBRARY / SUITES).iterdir() if item.name[0] != ".")


def load_document(spec: SpecSource) -> dict[str, Any]:
    """Load the document of a spec; a data set's name is an experiment of that name with nothing else set.

    Raises `SpecError` when there is no such file, it is not YAML, or it is no mapping.
    """
    if isinstance(spec, Spec):
        return spec.model_dump(mode="json")
    if isinstance(spec, Mapping):
        return dict(spec)
    if (shipped := _find_shipped(str(spec))) is not None:
        text, where = shipped.read_text(encoding="utf-8"), f"shipped experiment {spec}"
        folder = Path()
    else:
        path = Path(spec)
        if str(spec) in CATALOGUE and not path.exists():
            return {"name": str(spec), "dataset": {"name": str(spec)}}
        where, folder = str(path), path.parent
        if path.suffix.lower() in TABLES and path.exists():
            raise SpecError(
                f"{path} is a table of questions, not a spec: `medexam init {path}` writes a spec that asks them"
            )
        if path.is_dir():
            raise SpecError(f"{path} is a folder and no spec: name a file in it; `medexam report {path}` shows runs")
        try:
            text = decode(read_regular(path))
        except FileNotFoundError:
            raise SpecError(_unknown_spec(path)) from None
        except OSError as error:
            raise SpecError(f"cannot read {where}: {error}") from None
        except UnreadableError as error:
            raise SpecError(f"{where} {error}: save it as UTF-8") from None
    document = parse_yaml(text, where)
    if not isinstance(document, Mapping):
        detail = "the file is empty" if document is None else "this is none"
        raise SpecError(
            f"{where}: a spec is a mapping of keys to values, and {detail}; `medexam init` writes an example"
        )
    tree = {key: _placed(value, folder) for key, value in document.items()}
    if isinstance(tree.get("dataset"), Mapping):
        tree["dataset"] = _find_own_data(tree["dataset"], folder)
    return tree


def _unknown_spec(path: Path) -> str:
    """Return what is said of a spec that is not there: the nearest names, or all of them if none is near."""
    shipped = [*library_names(), *suite_names()]
    neighbours = [str(other) for ending in ("*.yaml", "*.yml") for other in sorted(path.parent.glob(ending))]
    suggestion = nearest(str(path), [*neighbours, *shipped, *CATALOGUE])
    if suggestion:
        return f"no spec {path}: did you mean {suggestion}?"
    if path.suffix in (".yaml", ".yml"):
        return f"no spec {path}: there is no such file; `medexam init {path}` writes one to start from"
    return f"no spec {path}: give a YAML file, a data set's name, or a shipped experiment ({', '.join(shipped)})"


def _find_shipped(name: str) -> Traversable | None:
    """Find the file of a suite or an experiment of this package or an installed one; None if there is none."""
    if name != Path(name).stem:
        return None
    files = (LIBRARY / SUITES / f"{name}.yaml", LIBRARY / f"{name}.yaml")
    return next((file for file in files if file.is_file()), None) or find_added(EXPERIMENTS).get(name)


def _find_own_data(dataset: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Put whole paths to one's own questions and their key: from the working folder, else the spec's."""
    if dataset.get("kind") is None:
        return dict(dataset)
    own_dataset = _with_whole_path(dataset, folder)
    if isinstance(key := own_dataset.get("answers"), Mapping):
        own_dataset["answers"] = _with_whole_path(key, folder)
    return own_dataset


def _with_whole_path(tree: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    if not isinstance(path := tree.get("path"), str):
        return dict(tree)
    own_path = Path(path).expanduser()
    location = own_path if own_path.exists() or not (folder / own_path).exists() else folder / own_path
    return {**tree, "path": str(location.absolute())}


def _placed(value: Any, folder: Path, key: str = "") -> Any:
    """Return the value with the whole paths of files beside the spec: of every `file.py:Name`, and of strategies."""
    if isinstance(value, Mapping):
        return {name: _placed(child, folder, name) for name, child in value.items()}
    if isinstance(value, list):
        return [_placed(child, folder, key) for child in value]
    if isinstance(value, str) and (_BESIDE.fullmatch(value) or (key in _STRATEGIES and value.endswith(".yaml"))):
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

"""Specs from YAML files, and from the command line's `--set key=value`."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.files import UnreadableError, decode
from medexam.specs.base import SourceText, Spec, parse_yaml
from medexam.specs.catalogue import CATALOGUE, find_added
from medexam.text import nearest

SpecSource = str | Path | Mapping[str, Any] | Spec
"""A YAML file, the name of a shipped experiment or of a data set, a document, or a spec that was built in Python."""
SCHEMA = Path(__file__).with_name("spec.schema.json")
"""The JSON Schema of a spec, for editors; `docs_site/spec_schema.py` writes it from the classes of specs."""
_BESIDE = re.compile(r"(?![/~])[^:]+\.py:[\w.]+")
_LIBRARY = Path(__file__).parents[1] / "experiments" / "library"


def library_files() -> dict[str, Path]:
    """Map the name of each experiment that ships with this package and with installed ones to its file."""
    return find_added("experiments") | {path.stem: path for path in _LIBRARY.glob("*.yaml")}


def load_document(spec: SpecSource) -> dict[str, Any]:
    """Load the document of a spec; a data set's name is an experiment of that name with nothing else set.

    Raises `SpecError` when there is no such file, it is not YAML, or it is no mapping.
    """
    if isinstance(spec, Spec):
        return spec.model_dump(mode="json")
    if isinstance(spec, Mapping):
        return dict(spec)
    name, path = str(spec), Path(spec)
    shipped = library_files().get(name) if name == path.stem else None
    if shipped is None and name in CATALOGUE and not path.exists():
        return {"name": name, "dataset": {"name": name}}
    try:
        document = parse_yaml(decode((shipped or path).read_bytes()), name, lines=True)
    except FileNotFoundError:
        shipped_names = sorted(library_files())
        neighbours = [str(other) for other in sorted(path.parent.glob("*.y*ml"))]
        near = nearest(name, [*neighbours, *shipped_names, *CATALOGUE])
        choices = f"a YAML file, which `medexam init {name}` writes, a data set, or one of {', '.join(shipped_names)}"
        raise SpecError(f"no spec {name}: {f'did you mean {near}?' if near else f'give {choices}'}") from None
    except (OSError, UnreadableError) as error:
        raise SpecError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(document, Mapping):
        detail = "the file is empty" if document is None else "this is none"
        raise SpecError(
            f"{name}: a spec is a mapping of keys to values, and {detail}; `medexam init` writes an example"
        )
    folder = path.parent if shipped is None else Path()
    tree = {key: _placed(value, folder) for key, value in document.items()}
    dataset = tree.get("dataset")
    if isinstance(dataset, dict) and dataset.get("kind") is not None:
        for part in (dataset, dataset.get("answers")):
            # One's own questions and their key: from the working folder, else from the spec's.
            if isinstance(part, dict) and isinstance(part.get("path"), str):
                own = Path(part["path"]).expanduser()
                part["path"] = str((own if own.exists() or not (folder / own).exists() else folder / own).absolute())
    return tree


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
        key, equals, text = map(str.strip, setting.partition("="))
        if not (key and equals):
            raise SpecError(f"--set {setting}: write it as key=value, such as --set dataset.language=es")
        # A signature's types and commas are no YAML.
        is_text = key.endswith(".signature") and "->" in text and text[0] not in "'\"[{"
        overrides[SourceText(key, "--set")] = text if is_text else parse_yaml(text, f"--set {key}")
    return overrides

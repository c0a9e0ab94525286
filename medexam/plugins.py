"""Code of the user's own that a spec names, short names that installed packages add, and this package's version.

A name is `package.module:Name` or `./file.py:Name`; an entry point of a group such as `medexam.programs` makes the
first a short name. Hashing the source runs nothing of a file; only `load_object` does. An object that a script made in
Python is named too, `object.DIGEST:Name`, and is there while its process lives.
"""

import ast
import hashlib
import importlib.util
import logging
import sys
from functools import cache, lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distributions, entry_points, version
from pathlib import Path
from types import ModuleType
from typing import Any

from medexam.errors import SpecError

try:
    __version__ = version("medexam")
except PackageNotFoundError:  # sources that nobody installed
    __version__ = "0+unknown"

_log = logging.getLogger(__name__)
_SITES = ("site-packages", "dist-packages")
"""Folders that Python installs packages into."""
_LIVE: dict[str, Any] = {}
"""Name -> object, of those that this process made; the last one of a name."""
_LIVE_PLACE = "object."


def name_object(value: Any, called: str, digest: str) -> str:
    """Name an object of this process, whose content `digest` tells from any other; `called` is its name in tables."""
    name = f"{_LIVE_PLACE}{digest}:{called}"
    _LIVE[name] = value
    return name


def is_live_name(name: str) -> bool:
    """Return whether `name` means an object that some process made."""
    return name.startswith(_LIVE_PLACE)


def ships(name: str, group: str) -> bool:
    """Return whether `name` is a part that comes with this package, whose spec says what it asks."""
    place = added_names(group).get(name.removeprefix(f"{group}:"), "")
    return place.startswith(("medexam.", "medexam_companions."))


def is_own_name(name: str, group: str) -> bool:
    """Return whether `name` is a user's own: it holds a colon, or an installed package adds it to `group`."""
    return ":" in name or name in added_names(group)


@cache
def added_names(group: str) -> dict[str, str]:
    """Map short name to `package.module:Name` for what installed packages add to `group`; nothing is imported."""
    return {point.name: point.value for point in sorted(entry_points(group=group))}


def resolve_name(name: str, group: str) -> tuple[str, str]:
    """Resolve `name` to the module or file and the object in it that it means.

    A name that a package adds may have its group before it, as it is stored. Raises `SpecError` if it is neither
    `module:Name`, `file.py:Name` nor such a name.
    """
    short = name.removeprefix(f"{group}:")
    place, _, attribute = added_names(group).get(short, short).rpartition(":")
    if not place or not attribute:
        raise SpecError(
            f"{name!r} names no code: write package.module:Name or ./file.py:Name, or install the package that adds it"
        )
    return place, attribute


def load_object(name: str, group: str) -> Any:
    """Load the object that `name` means, its module imported; raises `SpecError` where that is not possible."""
    place, attribute = resolve_name(name, group)
    if is_live_name(name):
        if name not in _LIVE:
            raise SpecError(f"{attribute} was an object of a script, so only that script can continue: run it again")
        return _LIVE[name]
    try:
        target: Any = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except SpecError:
        raise
    except Exception as error:
        raise SpecError(f"{name}: importing {place} failed: {type(error).__name__}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(target, part):
            offered = ", ".join(sorted(key for key in vars(target) if not key.startswith("_"))[:12])
            raise SpecError(f"{name}: {place} has no {attribute!r}; it has {offered}")
        target = getattr(target, part)
    return target


def load_added(group: str) -> dict[str, Any]:
    """Load what installed packages add to `group`, by name.

    What cannot be loaded is left out: a warning says so, unless the module is not there at all.
    """
    parts: dict[str, Any] = {}
    for name in added_names(group):
        try:
            parts[name] = load_object(name, group)
        except SpecError as error:
            absent = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
            if absent is None or not f"{resolve_name(name, group)[0]}.".startswith(f"{absent}."):
                _warn(f"{error}; it is left out")
    return parts


@cache
def _warn(text: str) -> None:
    """Write a warning, once."""
    _log.warning("medexam: warning: %s", text)


def read_first_line(name: str, group: str) -> str | None:
    """Read what the documentation string of a function, or else of its module, says first; nothing is imported.

    Empty if there is none; None if there is no source to read.
    """
    try:
        place, attribute = resolve_name(name, group)
        module = ast.parse(_source_file(name, place).read_bytes())
    except (SpecError, OSError, ValueError, SyntaxError):
        return None
    nodes: list[Any] = [node for node in module.body if getattr(node, "name", "") == attribute]
    docstrings = filter(None, map(ast.get_docstring, [*nodes, module]))
    return " ".join(next(docstrings, "").partition("\n\n")[0].split())


def hash_source(name: str, group: str) -> dict[str, Any]:
    """Hash what tells one version of the code from another: SHA-256 of its source and of the modules beside it.

    `object` is the name in the module. `files` holds the hash of each file, sorted, so that neither the folder nor the
    files' names count. Modules beside it are those that it imports, directly or through one another, from its own
    folder or the folder of its package; for installed code, from its top package alone. Instead of `files`, code of a
    package index has the `distribution` that it comes with and that one's `version`. Raises `SpecError` if there is no
    source. Of an object that a script made it is the digest in its name; code that ships is known by its name.
    """
    place, attribute = resolve_name(name, group)
    if ships(name, group):
        return {"object": name}
    if is_live_name(name):
        return {"object": attribute, "state": place.removeprefix(_LIVE_PLACE)}
    first = _source_file(name, place)
    root = top = first.parent
    if not place.endswith(".py"):
        # The source of a package is its `__init__.py`, which lies one folder deeper than a module of that name.
        root = top = first.parents[place.count(".") + (first.name == "__init__.py")]
        distribution = _find_distribution(first, root)
        # What was installed from a folder or an address may change and keep its version.
        if distribution is not None and distribution.read_text("direct_url.json") is None:
            return {"object": attribute, "distribution": distribution.name, "version": distribution.version}
        if distribution is not None or root.name in _SITES:
            top = root / place.partition(".")[0]
    return {"object": attribute, "files": sorted(_with_neighbours(first, root, top).values())}


@cache
def _find_distribution(first: Path, root: Path) -> Distribution | None:
    """Find the distribution that was installed into the folder `root` with the file; None if there is none."""
    for distribution in distributions(path=[str(root)]):
        # A project's own folder may hold metadata too; only what was installed has a record of its files.
        record = distribution.read_text("RECORD") or ""
        if first.relative_to(root).as_posix() in [line.partition(",")[0] for line in record.splitlines()]:
            return distribution
    return None


def _source_file(name: str, place: str) -> Path:
    if place.endswith(".py"):
        path = Path(place).expanduser().resolve()
        if not path.is_file():
            raise SpecError(f"{name}: there is no file {path}")
        return path
    try:
        spec = importlib.util.find_spec(place)
    except Exception as error:  # the packages above it are imported
        raise SpecError(f"{name}: no module {place!r} can be imported here: {error}") from None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise SpecError(f"{name}: no module {place!r} with source code can be imported; is it installed?")
    return Path(spec.origin).resolve()


def _with_neighbours(first: Path, root: Path, top: Path) -> dict[Path, str]:
    """Hash the file and those that it imports, found from the folder `root` and lying below `top`: file -> SHA-256."""
    digests: dict[Path, str] = {}
    queue = [first]
    while queue:
        path = queue.pop()
        if path not in digests:
            source = path.read_bytes()
            digests[path] = hashlib.sha256(source).hexdigest()
            queue += [file.resolve() for file in _importable(source, path, root, top) if file.is_file()]
    return digests


@lru_cache(maxsize=4096)
def _importable(source: bytes, path: Path, root: Path, top: Path) -> list[Path]:
    """List the files below `top` that a source may import, there or not; of evaluations that hash the same files again.

    A name after `from ... import` may be a module too.
    """
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError as error:
        raise SpecError(f"{path}, line {error.lineno}: {error.msg}") from None
    imports = (node for node in nodes if isinstance(node, ast.Import))
    stems = {root.joinpath(*alias.name.split(".")) for node in imports for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            folder = path.parents[node.level - 1] if node.level else root
            base = folder.joinpath(*filter(None, (node.module or "").split(".")))
            stems |= {*([base] if node.module else ()), *(base / alias.name for alias in node.names)}
    files = (file for stem in stems for file in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"))
    return [file for file in files if file.is_relative_to(top)]


_IMPORTED: dict[str, dict[Path, str]] = {}
"""Name of a module that a file was imported as -> that file and those beside it, with the SHA-256 that they had."""


def _import_file(path: Path) -> ModuleType:
    """Import the module of a file, anew once it or one beside it was edited; those beside it can be imported from it.

    So what runs is the code that `hash_source` describes.
    """
    path = path.expanduser().resolve()
    name = f"medexam_own_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if not path.is_file():
        raise SpecError(f"there is no file {path}")
    files = _with_neighbours(path, path.parent, path.parent)
    if name in sys.modules and _IMPORTED.get(name) == files:
        return sys.modules[name]
    if name in _IMPORTED:
        for other, module in list(sys.modules.items()):
            if other != "__main__" and Path(str(getattr(module, "__file__", ""))).resolve() in files:
                del sys.modules[other]
        for file in files:
            # Python trusts compiled code of the same size and second.
            Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
    _IMPORTED[name] = files
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - it ends in .py
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    # Before it runs: a class that is pickled or inspected while its module is imported is found by this name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

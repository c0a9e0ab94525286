"""The house: which module may import which, and how many stand in a room, read from the source."""

import ast
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import medexam

ROOT = Path(medexam.__file__).parent
GROUND = {"specs", "predictions"}
FLOOR_2 = {"datasets", "signatures", "retrievers", "serve"}
MAY_IMPORT = {
    "": set(),
    "predictions": set(),
    "specs": {"predictions"},
    **dict.fromkeys(FLOOR_2, GROUND),
    "serve": GROUND | {"signatures.thinking"},
    "programs": GROUND | {"signatures", "retrievers.base"},
    "measures": GROUND | {"datasets"},
    "experiments": GROUND | FLOOR_2 | {"programs", "measures"},
    "cli": GROUND | FLOOR_2 | {"programs", "measures", "experiments"},
}
"""Wing -> the wings, or single modules of them, that it may import beside itself and the modules at the root, `""`."""
LAZY = ("import lazy_loader", "__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)")
"""What a wing's package holds: its stub, `__init__.pyi`, names what the wing offers."""
ENTRIES = ("__init__", "__main__")
"""The files that stand for their package."""
HEAVY = {
    "dspy",
    "torch",
    "transformers",
    "faiss",
    "mlflow",
    "litellm",
    "vllm",
    "datasets",
    "pyarrow",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "statsmodels",
}
DSPY_EDGE = "dspy_internals.py"
"""The only module that may import what DSPy does not document."""
DSPY_WORDS = "dspy_requests.py"
"""The module that reads DSPy's requests and writes its responses."""
UNDOCUMENTED = ("dspy.clients.", "dspy.dsp.")
FOREIGN = {"self._scorer._model", "self._scorer._tokenizer", "sys._current_frames"}
"""Fields of bert-score, which have no public way; Python's manual documents that of `sys`."""
TESTS = Path(__file__).parent
COMPANIONS = ROOT.parent / "companions" / "medexam_companions"
MODULES = sorted(ROOT.rglob("*.py"))
OF_COMPANIONS = sorted(path for path in COMPANIONS.rglob("*.py") if "tests" not in path.parts)
WINGS = tuple(path.parent.name for path in sorted(ROOT.glob("*/__init__.pyi")))
"""Those that offer names to plug-ins, and to tests of hard functions."""
MOST_OFFERED = 239
"""Names of all wings."""
GROUND_DOORS = tuple(path.stem for path in ROOT.glob("[!_]*.py"))
"""Modules beside the wings, whose public names tests and companions may use."""
INSIDE = re.compile(r"\bmedexam(?:\.\w+){2,}")


class Source(NamedTuple):
    """What the tests ask of a module's source."""

    imports: frozenset[str]
    imports_at_module_level: frozenset[str]
    docstring: str | None
    beside_imports: tuple[str, ...]
    """Statements that are neither an import, nor the docstring, nor `__all__`."""
    private_fields: tuple[str, ...]
    """Private fields of other objects, with their lines."""


@cache
def _sources() -> dict[str, Source]:
    """Module of the package, as a path within it -> its source; each is parsed once."""
    return {path.relative_to(ROOT).as_posix(): _read(path) for path in MODULES}


@cache
def _all_sources() -> dict[str, Source]:
    """The same of the core and of companions, by the path in the repository."""
    companions = {path.relative_to(ROOT.parent).as_posix(): _read(path) for path in OF_COMPANIONS}
    return {**{f"medexam/{path}": source for path, source in _sources().items()}, **companions}


def _read(path: Path) -> Source:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    return Source(
        _imports(nodes),
        _imports(_module_level(tree)),
        ast.get_docstring(tree),
        tuple(ast.unparse(node) for node in tree.body if not _is_import(node)) if path.name == "__init__.py" else (),
        tuple(_private_fields(nodes)),
    )


def _imports(nodes: Iterable[ast.AST]) -> frozenset[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"relative import of {node.module}"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def _is_import(node: ast.stmt) -> bool:
    """Whether a package may hold it: at most, it loads the names of its stub when they are first used."""
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_all = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    return isinstance(node, ast.ImportFrom) or is_docstring or is_all or ast.unparse(node) in LAZY


def _private_fields(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = ast.unparse(node.value)
            own = owner in {"self", "cls", "super()"} or node.attr in {"_asdict", "_exit"}
            if not own and f"{owner}.{node.attr}" not in FOREIGN:
                yield f"{node.lineno}: {owner}.{node.attr}"


def _module_level(tree: ast.Module) -> list[ast.stmt]:
    """Statements that run on import; what stands under TYPE_CHECKING does not."""
    return [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.If))]


def _imports_of_modules() -> dict[str, frozenset[str]]:
    """Module of the package, as a path within it -> what it imports."""
    return {path: source.imports for path, source in _sources().items()}


def _find_arrows(imports: Mapping[str, frozenset[str]]) -> list[tuple[str, str]]:
    """Each import within the package: dotted paths of the module and of what it imports."""
    found = []
    for path, names in imports.items():
        parts = Path(path).with_suffix("").parts
        here = ".".join(parts[:-1] if parts[-1] in ENTRIES else parts)
        found += [(here, name.removeprefix("medexam.")) for name in names if name.startswith("medexam.")]
    return found


def _faults(imports: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """What stands against the floors in a package of these modules."""
    wings = {path.split("/")[0] for path in imports if "/" in path}
    yield from (f"{wing} stands on no floor" for wing in sorted(wings - MAY_IMPORT.keys()))
    for here, target in _find_arrows(imports):
        wing, other = (name.split(".")[0] if name.split(".")[0] in wings else "" for name in (here, target))
        allowed = MAY_IMPORT.get(wing, set())
        if wing != other and other and here and not {other, ".".join(target.split(".")[:2])} & allowed:
            yield f"{here} may not import {target}"
    yield from (f"{path} names a companion" for path, names in imports.items() if any(map(_is_companion, names)))


def _is_companion(name: str) -> bool:
    return name.startswith("medexam_companions")


def test_every_import_goes_down() -> None:
    assert not list(_faults(_imports_of_modules()))


@pytest.mark.parametrize(
    ("module", "added"),
    [
        ("measures/words.py", "from medexam.serve import Client"),
        ("cli/track.py", "from medexam_companions.booklets.keys import read_key"),
        ("questions.py", "from medexam.specs import ModelSpec"),
    ],
)
def test_an_arrow_that_points_up_is_found(module: str, added: str) -> None:
    imports = _imports_of_modules()
    (fault,) = _faults({**imports, module: imports[module] | _imports(ast.parse(added).body)})
    assert fault.replace(".", "/").startswith(module.removesuffix(".py"))


def test_a_wing_without_a_floor_is_found() -> None:
    (fault,) = _faults({**_imports_of_modules(), "attic/boxes.py": frozenset()})
    assert fault == "attic stands on no floor"


def test_floors_0_1_and_5_import_nothing_heavy() -> None:
    imports = {
        path: {name.split(".")[0] for name in source.imports_at_module_level} & HEAVY
        for path, source in _sources().items()
        if path not in (DSPY_EDGE, DSPY_WORDS)
        and ("/" not in path or path.startswith(("predictions/", "specs/", "cli/")))
    }
    assert len(imports) > 50
    assert not {path: heavy for path, heavy in imports.items() if heavy}


def test_one_module_alone_imports_what_dspy_does_not_document() -> None:
    importing = {path for path, source in _all_sources().items() if any(map(_is_undocumented, source.imports))}
    assert importing == {f"medexam/{DSPY_EDGE}"}


def _is_undocumented(name: str) -> bool:
    return name.startswith(UNDOCUMENTED)


def test_packages_hold_imports_only() -> None:
    """At most delayed by a `__getattr__`, where a module of the package is needed without the heavy others."""
    assert not {
        path: source.beside_imports
        for path, source in _all_sources().items()
        if path != "medexam/__init__.py" and source.beside_imports
    }


def test_every_module_says_why_it_exists() -> None:
    assert not [path for path, source in _all_sources().items() if not source.docstring]


def _offers() -> dict[str, list[str]]:
    """Wing -> the names of its stub."""
    return {wing: importlib.import_module(f"medexam.{wing}").__all__ for wing in WINGS}


def test_what_a_wing_lists_is_there_and_is_little() -> None:
    offers = _offers()
    assert [
        name for wing, names in offers.items() for name in names if not hasattr(sys.modules[f"medexam.{wing}"], name)
    ] == []
    assert sum(map(len, offers.values())) <= MOST_OFFERED


def _door_faults(path: Path) -> Iterator[str]:
    """What a test or a companion names of the inside: imports, patched paths and code in strings beyond a door."""
    tree, offers = ast.parse(path.read_text(encoding="utf-8")), _offers()
    in_strings = [
        "\n".join(INSIDE.findall(node.value))
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    imports = _imports(ast.walk(tree)) | {name for text in in_strings for name in text.split()}
    for name in sorted(imports):
        package, *rest = name.split(".")
        if package == "medexam_companions" and rest and path.is_relative_to(COMPANIONS):
            is_inside = rest[0] == path.relative_to(COMPANIONS).parts[0] and "tests" not in path.parts
            if not is_inside and rest[1:] and rest[-1] not in _room_offers(*rest[:-1]):
                yield f"{path.relative_to(ROOT.parent)}: {name}"
        elif package in ("medexam", "medexam_companions") and rest:
            first, *rest = rest
            public = offers.get(first) or (rest if first in GROUND_DOORS and not "".join(rest).startswith("_") else [])
            is_offered = first in {*offers, *GROUND_DOORS, *medexam.__all__}
            if package != "medexam" or not is_offered or (rest and rest not in [[each] for each in public]):
                yield f"{path.relative_to(ROOT.parent)}: {name}"


def _room_offers(*folders: str) -> list[str]:
    """The names of the stub of a companion, or of a folder in it; none if it has none."""
    if not (COMPANIONS / Path(*folders) / "__init__.pyi").is_file():
        return []
    return importlib.import_module(".".join(["medexam_companions", *folders])).__all__


@pytest.mark.parametrize(
    "folder", [TESTS, COMPANIONS, COMPANIONS.parent / "tests"], ids=["tests", "rooms", "companions"]
)
def test_tests_and_companions_come_through_the_doors(folder: Path) -> None:
    paths = (path for path in sorted(folder.rglob("*.py")) if path.name != Path(__file__).name)
    assert [fault for path in paths for fault in _door_faults(path)] == []


def test_a_bench_beside_the_core_names_no_companion() -> None:
    assert not [
        path for path in (ROOT.parent / "bench").rglob("*.py") if "medexam_companions" in path.read_text("utf-8")
    ]


def test_nobody_reaches_into_another_objects_private_fields() -> None:
    assert not [f"{path}:{field}" for path, source in _all_sources().items() for field in source.private_fields]


def test_its_kind_and_the_programs_that_make_it_alone_name_evidence() -> None:
    fields = re.compile(r"\b(label_mass|order_scores|read_why)\b")
    wings = {path.relative_to(ROOT).parts[0] for path in MODULES if fields.search(path.read_text(encoding="utf-8"))}
    assert wings == {"predictions", "programs", "measures"}

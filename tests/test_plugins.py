"""The user's own code: found, hashed without being run, and imported when it is used."""

import pytest

from medexam.errors import SpecError
from medexam.plugins import hash_source, is_own_name, load_object

GROUP = "medexam.programs"


def _write(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return f"{folder / name}:Thing"


def test_a_file_is_known_by_its_content_and_not_by_its_place(tmp_path) -> None:
    first = _write(tmp_path / "a", "one.py", "class Thing: x = 1\n")
    second = _write(tmp_path / "b", "other.py", "class Thing: x = 1\n")
    assert hash_source(first, GROUP) == hash_source(second, GROUP)
    _write(tmp_path / "b", "other.py", "class Thing: x = 2\n")
    assert hash_source(first, GROUP) != hash_source(second, GROUP)


def test_modules_beside_it_count_and_others_do_not(tmp_path) -> None:
    name = _write(tmp_path, "main.py", "import json\nfrom beside_it import help_me\nclass Thing: pass\n")
    _write(tmp_path, "beside_it.py", "import far_one\n")
    _write(tmp_path, "far_one.py", "import beside_it, main\nfrom . import beside_it\nx = 1\n")
    _write(tmp_path, "unrelated.py", "x = 1\n")
    before = hash_source(name, GROUP)
    assert len(before["files"]) == 3
    _write(tmp_path, "unrelated.py", "x = 2\n")
    assert hash_source(name, GROUP) == before
    _write(tmp_path, "far_one.py", "x = 2\nfrom .unrelated import x\n")
    assert hash_source(name, GROUP) != before
    assert len(hash_source(name, GROUP)["files"]) == 4


def test_a_package_is_hashed_with_what_it_imports(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    _write(tmp_path / "own_pkg", "__init__.py", "")
    _write(tmp_path / "own_pkg", "parts.py", "x = 1\n")
    _write(tmp_path / "own_pkg", "main.py", "from own_pkg import parts\nraise SystemExit('imported')\n")
    _write(tmp_path / "unmarked" / "inner", "mine.py", "class Thing: x = 1\n")
    assert len(hash_source("own_pkg.main:Thing", GROUP)["files"]) == 3
    assert len(hash_source("unmarked.inner.mine:Thing", GROUP)["files"]) == 1
    assert load_object("unmarked.inner.mine:Thing", GROUP).x == 1
    with pytest.raises(SpecError, match="can be imported"):
        hash_source("own_pkg.none:Thing", GROUP)


def _install(folder, *, direct=False):
    """Put a package of one distribution, and a library beside it, into a folder as an installer does."""
    _write(folder / "plug_in", "__init__.py", "")
    _write(folder / "plug_in", "main.py", "import plug_in.parts\nimport plug_library\n")
    _write(folder / "plug_in", "parts.py", "x = 1\n")
    _write(folder, "plug_library.py", "x = 1\n")
    metadata = folder / "Plug_In-1.2.dist-info"
    _write(metadata, "METADATA", "Metadata-Version: 2.1\nName: Plug-In\nVersion: 1.2\n")
    _write(metadata, "RECORD", "plug_in/__init__.py,,\nplug_in/main.py,sha256=x,41\nplug_in/parts.py,,\n")
    if direct:
        _write(metadata, "direct_url.json", "{}")
    return "plug_in.main:Thing"


def test_installed_code_is_known_by_its_distribution(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = _install(tmp_path)
    assert hash_source(name, GROUP) == {"object": "Thing", "distribution": "Plug-In", "version": "1.2"}
    assert hash_source("dspy:ChainOfThought", GROUP).keys() == {"object", "distribution", "version"}


def test_what_was_installed_from_a_folder_is_known_by_its_top_package(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = _install(tmp_path, direct=True)
    before = hash_source(name, GROUP)
    assert len(before["files"]) == 2
    _write(tmp_path, "plug_library.py", "x = 2\n")
    assert hash_source(name, GROUP) == before
    _write(tmp_path / "plug_in", "parts.py", "x = 2\n")
    assert hash_source(name, GROUP) != before


def test_an_object_comes_from_a_file_with_its_neighbours(tmp_path) -> None:
    name = _write(tmp_path, "first_module.py", "from second_module import value\nclass Thing: x = value\n")
    _write(tmp_path, "second_module.py", "value = 7\n")
    assert load_object(name, GROUP).x == 7
    assert is_own_name(name, GROUP)
    assert not is_own_name("zero_shot", GROUP)


def test_code_that_was_edited_is_what_runs(tmp_path) -> None:
    name = _write(tmp_path, "edited.py", "from beside import y\nclass Thing: x = 1 + y\n")
    _write(tmp_path, "beside.py", "y = 1\n")
    assert load_object(name, GROUP).x == 2
    assert load_object(name, GROUP) is load_object(name, GROUP)
    _write(tmp_path, "beside.py", "y = 3\n")
    assert load_object(name, GROUP).x == 4
    _write(tmp_path, "edited.py", "from beside import y\nclass Thing: x = 5 + y\n")
    assert load_object(name, GROUP).x == 8


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "names no code"),
        ("/no/where.py:Thing", "there is no file"),
        ("no_such_module_at_all:Thing", "No module named"),
        ("json:Nothing", "json has no 'Nothing'; it has JSONDecodeError"),
    ],
)
def test_what_cannot_be_found_is_said(name, says) -> None:
    with pytest.raises(SpecError, match=says):
        load_object(name, GROUP)

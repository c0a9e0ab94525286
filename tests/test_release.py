"""What others install: dependencies that are declared and pinned, one version, a page without dead links."""

import ast
import re
import runpy
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

import medexam

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


DECLARED = {
    _name(one) for listed in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()) for one in listed
}


def _imported() -> dict[str, str]:
    """Each top-level package that the sources import, and a file that does."""
    found = {}
    companions = (path for path in (ROOT / "companions").rglob("*/*/*.py") if "tests" not in path.parts)
    for path in (*(ROOT / "medexam").rglob("*.py"), *companions):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            else:
                continue
            found |= {name.partition(".")[0]: str(path) for name in names}
    ours = {*sys.stdlib_module_names, "medexam", "medexam_companions"}
    return {name: path for name, path in found.items() if name not in ours}


def test_what_is_imported_is_declared() -> None:
    known = packages_distributions()
    undeclared = {
        f"{name}, imported in {path}"
        for name, path in _imported().items()
        if not DECLARED & {_name(one) for one in known.get(name, [name])}
    }
    assert not undeclared


def test_what_is_declared_is_pinned() -> None:
    pinned = {_name(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    outside = {"vllm", "medexam"}  # vLLM has an environment of its own, with its own PyTorch
    assert not DECLARED - pinned - outside


def test_the_version_is_not_written_in_the_sources() -> None:
    assert "version" in PROJECT["dynamic"]
    assert re.match(r"\d+\.\d+|0\+unknown", medexam.__version__)


def test_the_package_page_has_no_relative_link() -> None:
    page = runpy.run_path(str(ROOT / "setup.py"))["page"]()
    source = PROJECT["urls"]["Source"]
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) > 20
    assert all(link.startswith(("https://", "#")) for link in links)
    assert f"]({source}/blob/main/docs/tour.md#install)" in page


def test_the_files_that_the_readme_links_are_there() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / "README.md").read_text())
    links = [link for link in links if (ROOT / "companions").is_dir() or not link.startswith("companions/")]
    assert not [link for link in links if not (ROOT / link).exists()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_can_read_and_no_more_unless_a_job_says_so(path) -> None:
    document = yaml.safe_load(path.read_text())
    assert document["permissions"] == {"contents": "read"}
    for job in document["jobs"].values():
        for step in job["steps"]:
            assert "uses" in step or "run" in step
            if str(step.get("uses", "")).startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_the_tested_pythons_are_those_that_are_promised() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    promised = [line.rpartition(" :: ")[2] for line in PROJECT["classifiers"] if ":: Python :: 3." in line]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"
    assert jobs["wheel"]["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]


def test_every_page_is_in_the_sites_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert not {page for page in pages if f": {page}\n" not in menu}

"""What mkdocs does for this site beside its own: pages made from the package, and links that lead out of `docs/`.

Links to the README lead to the first page, `docs/index.md`. Links to files that are no pages lead to the repository.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from api_page import api_page
from command_page import command_page
from spec_page import spec_page

ROOT = Path(__file__).parent.parent
COPIED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
    **{
        path.relative_to(ROOT).as_posix(): f"{path.parent.name}.md"
        for path in sorted(ROOT.glob("companions/medexam_companions/*/README.md"))
    },
}
"""Files beside `docs/` -> the pages that they are."""
MADE = {
    "reference/commands.md": command_page,
    "reference/spec.md": spec_page,
    "reference/api.md": api_page,
}
STYLE = Path(__file__).parent / "site.css"
LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie elsewhere or are made from the package."""
    for source, page in COPIED.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = LINK.sub(lambda found, at=Path(source).parent: _relink(found, at), text)
        files.append(File.generated(config, page, content=text))
    for page, make in MADE.items():
        files.append(File.generated(config, page, content=make()))
    files.append(File.generated(config, STYLE.name, content=STYLE.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links of a page in `docs/` that lead out of it."""
    if page.file.generated_by is not None:
        return markdown
    return LINK.sub(lambda found: _relink(found, Path("docs")) if found[2].startswith("../") else found[0], markdown)


def _relink(found: re.Match[str], folder: Path) -> str:
    """Return a link in a file of `folder`, as the site has it."""
    parts: list[str] = []
    for part in (folder / found[2]).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    path, anchor = "/".join(parts), found[3] or ""
    if path == "README.md":
        path, anchor = "index.md", ""
    elif path in COPIED:
        path = COPIED[path]
    elif path.startswith("docs/"):
        path = path.removeprefix("docs/")
    else:
        path = f"{_source()}/blob/main/{path}"
    return f"{found[1]}{path}{anchor})"


def _source() -> str:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        return str(tomllib.load(stream)["project"]["urls"]["Source"])

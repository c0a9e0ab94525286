"""The page of what `import medexam` offers, from its list of public names.

mkdocstrings reads their signatures and docs.
"""

import medexam

INTRODUCTION = """\
# Python API

What `import medexam` offers. [Python](../python.md) shows how the parts go together.
"""


def api_page() -> str:
    """Return the page as Markdown, a directive of mkdocstrings for each public name."""
    names = [name for name in medexam.__all__ if not name.startswith("_")]
    return "\n\n".join([INTRODUCTION, *(f"## {name}\n\n::: {home(name)}" for name in names)]) + "\n"


def home(name: str) -> str:
    """Find the dotted path of the module that defines a public name, and the name."""
    return f"{getattr(medexam, name).__module__}.{name}"

"""The text of the package's page: the README, whose links lead to the repository instead of to files beside it."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def page() -> str:
    """Return the README with every relative link absolute; pictures lead to their bytes."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        source = tomllib.load(stream)["project"]["urls"]["Source"]

    def absolute(found: re.Match[str]) -> str:
        view = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({source}/{view}/main/{found[3]})"

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)]+)\)", absolute, text)


if __name__ == "__main__":
    setup(long_description=page(), long_description_content_type="text/markdown")

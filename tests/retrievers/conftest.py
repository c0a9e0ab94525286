"""An index that several modules search."""

from pathlib import Path

import pytest

from medexam.retrievers import build_index
from retrievers.random_vectors import CORPUS, HashEncoder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexes") / "flat"
    build_index(CORPUS, HashEncoder(), folder)
    return folder

"""An index that several modules search."""

from pathlib import Path

import pytest

from medexam.retrievers import build_index, build_shard, join_shards, prepare_shards
from retrievers.random_vectors import CORPUS, HashEncoder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexes") / "flat"
    build_index(CORPUS, HashEncoder(), folder)
    return folder


@pytest.fixture(scope="session")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexes") / "sharded"
    for shard in prepare_shards(CORPUS, HashEncoder(), folder, 3):
        build_shard(folder, shard, HashEncoder())
    join_shards(HashEncoder(), folder)
    return folder

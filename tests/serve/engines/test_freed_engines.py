"""A closed engine frees its weights when the last reference to it goes, without a search for cycles."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import medexam
from medexam.dspy_requests import read_dialogue
from medexam.serve import EmbeddedEngine, LocalModel
from medexam.specs import ModelSpec
from waiting import until

PROGRAMS = [
    {"kind": "zero_shot", "max_tokens": 4},
    {"kind": "zero_shot", "answer_format": "guided"},
    {"kind": "chain_of_thought", "max_tokens": 4, "samples": 2},
    {"kind": "likelihood"},
]


@pytest.fixture
def models(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Any]]]:
    """References to the models that are loaded from here on; garbage is not collected meanwhile."""
    # transformers imports a model's classes when it first loads one, and errors of these imports keep the callers.
    asyncio.run(EmbeddedEngine(ModelSpec(path=tiny_llama)).aclose())
    loaded: list[weakref.ref[Any]] = []
    load = LocalModel.__init__

    def load_and_refer(model: LocalModel, *args: Any, **kwargs: Any) -> None:
        load(model, *args, **kwargs)
        loaded.append(weakref.ref(model.model))

    monkeypatch.setattr(LocalModel, "__init__", load_and_refer)
    gc.collect()
    gc.disable()
    yield loaded
    gc.enable()


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_run_frees_its_model(program: dict[str, Any], tiny_llama: Path, tmp_path: Path, models) -> None:
    document = {
        "name": "freed",
        "dataset": {"name": "headqa_sample", "limit": 3},
        "model": {"path": str(tiny_llama), "temperature": 0.7},
        "program": program,
    }
    (run,) = medexam.run(document, runs_dir=tmp_path, progress=False, track=False)
    assert run.complete
    assert len(models) == 1
    # The thread that computed may be about to end.
    until(lambda: models[0]() is None, "the end of the model")


def test_an_engine_that_nobody_closes_is_freed_with_its_last_user_and_its_thread_ends(tiny_llama: Path, models, ask):
    engine = EmbeddedEngine(ModelSpec(path=tiny_llama))
    thread = engine._thread._thread
    future = engine.submit(read_dialogue(ask("Hello", max_tokens=4)))
    del engine
    assert future.result()[0].reply, "a request that is pending keeps its engine"
    del future
    until(lambda: not thread.is_alive(), "the end of the thread")
    assert [model() for model in models] == [None]

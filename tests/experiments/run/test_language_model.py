"""A live engine as DSPy's language model: the spec's settings, whatever the model is called."""

import pytest

from medexam.experiments import build_lm
from medexam.model_calls import Sampling
from medexam.serve import ScriptedEngine
from medexam.specs import ModelSpec


@pytest.mark.parametrize("name", ["openai/gpt-5", "openai/o3-mini", "openai/gpt-4o"])
def test_no_name_of_a_model_changes_its_settings(name: str) -> None:
    spec = ModelSpec(engine="litellm", name=name, temperature=0.5, max_tokens=2048, seed=3)
    lm = build_lm(spec, ScriptedEngine({}))
    assert Sampling.of(lm.kwargs)[:2] == (2048, 0.5)
    assert Sampling.of(lm.kwargs).seed == 3

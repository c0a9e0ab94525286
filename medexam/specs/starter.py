"""A first spec with a comment on each line, for what is at hand."""

from pathlib import Path
from string import Template

from medexam.specs.catalogue import EXAMS, SAMPLE
from medexam.specs.schema import SCHEMA

_TEXT = Template("""\
# yaml-language-server: $$schema=$schema
# An experiment: which questions, which model, which programs. `medexam plan $file` shows what would run,
# `medexam run $file` runs it, and the same command continues it after an interruption.
name: $name

dataset:
$dataset
  limit: 60                      # at most 60 questions, spread evenly; leave it out to ask all

model:
$model
  # temperature: 0.0             # 0 takes the likeliest token at each step

# Each program is a run of its own, on the same questions. `medexam compare` sets them side by side.
matrix:
  program:
    - {kind: zero_shot, answer_format: guided}          # the model can reply only with an option
    - {kind: chain_of_thought, answer_format: guided}   # it reasons first
    - {kind: likelihood}                                # it writes nothing: the likeliest option counts
    - {kind: random}                                    # the chance level, for comparison
    # - {kind: "./my_strategies.py:Debate"}             # a DSPy module of your own, in a file beside this one
""")
_SAMPLE = f"""\
  name: {SAMPLE.name}            # ships with the package; or {", ".join(EXAMS[1:])}
  language: en
  # years: 2016                  # one, or a list"""
_EMBEDDED = """\
  engine: embedded               # transformers in this process; SmolLM2 unless name or path says otherwise
  # name: Qwen/Qwen3-0.6B        # a model of the Hugging Face hub
  # path: ./my_model             # or a folder"""
_OTHER_SERVER = "  # engine: litellm              # for another server with OpenAI's API; with name: openai/MODEL"


def starter_spec(file: Path, endpoint: str | None) -> str:
    """Write the text of a spec to be written to `file`, which asks the sample that ships.

    `endpoint` is the base address of a vLLM server, None takes the embedded engine.
    """
    model = _EMBEDDED
    if endpoint is not None:
        model = f"  engine: vllm\n  endpoints: {endpoint}          # or a list of replicas\n{_OTHER_SERVER}"
    name = file.stem.replace(" ", "_")
    return _TEXT.substitute(schema=SCHEMA.as_posix(), file=file.name, name=name, dataset=_SAMPLE, model=model)

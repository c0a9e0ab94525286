"""The JSON Schema of a spec, which completes a YAML file's keys in editors, and a first spec to start from.

`docs_site/spec_schema.py` writes the schema from the classes of specs.
"""

from pathlib import Path
from string import Template

SCHEMA = Path(__file__).with_name("spec.schema.json")
"""The schema as it ships, for editors; `medexam schema` prints the same."""
_EMBEDDED = """\
  engine: embedded               # transformers in this process; SmolLM2 unless name or path says otherwise
  # name: Qwen/Qwen3-0.6B        # a model of the Hugging Face hub
  # path: ./my_model             # or a folder"""
_SERVED = """\
  engine: vllm
  endpoints: {}          # or a list of replicas
  # engine: litellm              # for another server with OpenAI's API; with name: openai/MODEL"""


def starter_spec(file: Path, endpoint: str | None) -> str:
    """Write the text of a spec to be written to `file`, which asks the sample that ships, with a comment on each line.

    `endpoint` is the base address of a vLLM server, None takes the embedded engine.
    """
    text = Path(__file__).with_name("starter.txt").read_text(encoding="utf-8")
    model = _EMBEDDED if endpoint is None else _SERVED.format(endpoint)
    return Template(text).substitute(
        schema=SCHEMA.as_posix(), file=file.name, name=file.stem.replace(" ", "_"), model=model
    )

"""Templates read from a model's files render as transformers renders them."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from medexam.errors import InvalidRequestError
from medexam.serve import load_template, smollm2_folder

TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 or 2?"}]
TEMPLATE = """{{ bos_token }}{% for message in messages %}
    {% if message['role'] == 'system' and refuse is defined %}{{ raise_exception('no system') }}{% endif %}
    {% if loop.index > 9 %}{% break %}{% endif %}
    {{- '[' + message['role'] + ']' + message['content'] | trim + eos_token }}
{% endfor %}
{% if add_generation_prompt %}{{ '[assistant]' }}{% endif %}"""
LOOPS = """{% for message in messages %}{{ loop.index, loop.first, loop.last, loop.length, loop.cycle('a', 'b') }}
{{- loop.previtem is defined }}{{ loop.none is defined }}{% endfor %}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = Tokenizer(WordLevel({"<s>": 0, "</s>": 1, "[UNK]": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = {
        "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": False, "rstrip": False, "normalized": False},
        "eos_token": "</s>",
        "unk_token": "[UNK]",
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": [{"name": "tools", "template": "no"}, {"name": "default", "template": TEMPLATE}],
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("own", [None, LOOPS], ids=["of the configuration", "of a file of its own, which goes first"])
async def test_it_renders_as_transformers_does(folder: Path, own: str | None) -> None:
    from transformers import AutoTokenizer

    if own is not None:
        (folder / "chat_template.jinja").write_text(own, encoding="utf-8")
    expected = AutoTokenizer.from_pretrained(folder).apply_chat_template(
        TURNS, tokenize=False, add_generation_prompt=True
    )
    assert await load_template(str(folder)).render(TURNS) == expected


async def test_the_papers_turns_are_those_of_smollm2() -> None:
    turns = [{"role": role, "content": text} for role, text in (("system", ""), ("user", "Told"), ("user", "Asked"))]
    written = "".join(f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in turns)
    assert await load_template(str(smollm2_folder())).render(turns) == f"{written}<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('no ' ~ messages[0].role) }}", "no system"),
        *[
            (f"{{% for m in messages %}}{{{{ {inside} }}}}{{% endfor %}}", "unsafe|undefined")
            for inside in ("loop.__class__.__mro__", "loop._iterable.x", "loop.cycle.__globals__.x")
        ],
    ],
)
async def test_what_a_template_refuses_or_must_not_see_is_an_error(folder: Path, template: str, said: str) -> None:
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    with pytest.raises(InvalidRequestError, match=said):
        await load_template(str(folder)).render(TURNS)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *[("tokenizer_config.json", damage) for damage in ("", "{", "{}", '{"chat_template": "{% if %}"}')],
        ("tokenizer.json", "{}"),
    ],
)
def test_files_that_say_nothing_give_no_template(folder: Path, file: str, content: str) -> None:
    (folder / file).write_text(content, encoding="utf-8")
    assert load_template(str(folder)) is None

"""Templates read from a model's files render as transformers renders them."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from medexam.errors import InvalidRequestError
from medexam.serve import load_template
from medexam.serve.engines.choice_tokens import ChoiceTokens

TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 or 2?"}]
TEMPLATE = """{{ bos_token }}{% for message in messages %}
    {% if message['role'] == 'system' and refuse is defined %}{{ raise_exception('no system') }}{% endif %}
    {% if loop.index > 9 %}{% break %}{% endif %}
    {{- '[' + message['role'] + ']' + message['content'] | trim + eos_token }}
{% endfor %}
{% if add_generation_prompt %}{{ '[assistant]' }}{% endif %}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = {"<s>": 0, "</s>": 1, "[": 2, "]": 3, "assistant": 4, "1": 5, "2": 6, "[UNK]": 7, "Answer": 8, ":": 9}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
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


async def test_it_renders_as_transformers_does(folder: Path) -> None:
    from transformers import AutoTokenizer

    local = load_template(str(folder))
    assert local is not None
    expected = AutoTokenizer.from_pretrained(folder).apply_chat_template(
        TURNS, tokenize=False, add_generation_prompt=True
    )
    assert await local.render(TURNS) == expected


LOOPS = """{% for message in messages %}{{ loop.index, loop.first, loop.last, loop.length, loop.cycle('a', 'b') }}
{{- loop.previtem is defined }}{{ loop.none is defined }}{% endfor %}"""


async def test_loops_are_those_of_transformers_and_their_inside_stays_shut(folder: Path) -> None:
    from transformers import AutoTokenizer

    (folder / "chat_template.jinja").write_text(LOOPS, encoding="utf-8")
    local = load_template(str(folder))
    assert local is not None
    assert await local.render(TURNS) == AutoTokenizer.from_pretrained(folder).apply_chat_template(TURNS, tokenize=False)
    for inside in ("loop.__class__.__mro__", "loop._iterable.x", "loop.cycle.__globals__.x"):
        (folder / "chat_template.jinja").write_text(f"{{% for m in messages %}}{{{{ {inside} }}}}{{% endfor %}}")
        shut = load_template(str(folder))
        assert shut is not None
        with pytest.raises(InvalidRequestError, match=r"unsafe|undefined"):
            await shut.render(TURNS)


async def test_choices_are_single_tokens_or_none(folder: Path) -> None:
    local = load_template(str(folder))
    assert local is not None
    tokens = ChoiceTokens(local)
    prompt = await local.render(TURNS) + "Answer: "
    assert await tokens.find(prompt, "Answer: ", ["1", "2"]) == (5, 6)
    assert await tokens.find(prompt, "", ["1", "2"]) == (5, 6)
    assert await tokens.find(prompt, "Answer: ", ["1", "1 2"]) is None
    assert await tokens.find(prompt, "Answer: ", ["8", "9"]) is None, "two choices share the unknown token"


async def test_a_file_of_its_own_goes_before_the_configuration(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ raise_exception('no ' ~ messages[0].role) }}", encoding="utf-8")
    local = load_template(str(folder))
    assert local is not None
    with pytest.raises(InvalidRequestError, match="no system"):
        await local.render(TURNS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", False),
        ("{% if enable_thinking is defined %}<think>{% endif %}", True),
        ("{{ messages[0].reasoning_content }}", True),
        ("<|channel|>final", True),
    ],
)
def test_a_template_tells_whether_the_model_may_reason(folder: Path, words: str, expected: bool) -> None:
    (folder / "chat_template.jinja").write_text(TEMPLATE + words, encoding="utf-8")
    local = load_template(str(folder))
    assert local is not None
    assert local.may_reason is expected


@pytest.mark.parametrize("damage", ["", "{", "{}", '{"chat_template": "{% if %}"}'])
def test_files_that_say_nothing_give_no_template(folder: Path, damage: str) -> None:
    (folder / "tokenizer_config.json").write_text(damage, encoding="utf-8")
    assert load_template(str(folder)) is None


def test_a_broken_tokenizer_gives_no_template(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert load_template(str(folder)) is None


@pytest.mark.parametrize("source", ["nobody/has-this", "not//a name"])
def test_models_that_are_not_here(source: str) -> None:
    assert load_template(source) is None

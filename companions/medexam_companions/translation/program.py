"""The words that ask for a translation, and the DSPy program that asks: one call a question, never a second.

The words are shipped as data, or a user's own file of the same form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import dspy
from pydantic import Field

from medexam.errors import SpecError
from medexam.frozen_model import FrozenModel
from medexam.programs import AskingProgram
from medexam.questions import Task
from medexam.signatures import validate_words
from medexam_companions.translation.layout import QuestionText, render_layout, text_of_task
from medexam_companions.translation.validity import clean_reply

WORDS = Path(__file__).with_name("words") / "translate.yaml"
SETUPS = ("zero_shot", "one_shot", "expert")
"""The shipped ones; a file of one's own may hold others."""
PROGRAM = "translate"
"""The program's name in a spec."""
REPLY_TOKENS = 1024
"""Default budget of a reply: the longest question of ten years of exams has some 400 words."""


class SetupWords(FrozenModel):
    """The words of one set-up, of a file or for one pair of languages."""

    system: str | None = None
    user: str
    """With `$question` where the question goes."""
    keywords: tuple[str, ...] = ()
    """What opens a part of the prompt; where a reply writes one again, the translation has ended."""
    plain: bool = False
    """Whether the reply continues the words as plain text, without a chat template."""


class _Example(FrozenModel):
    stem: str
    options: list[str] = Field(min_length=2)


class _File(FrozenModel):
    languages: dict[str, str]
    keywords: list[str]
    setups: dict[str, SetupWords] = Field(min_length=1)
    example: dict[str, _Example] = Field(default_factory=dict)


def load_setups(
    names: Sequence[str], source: str, target: str, path: Path | None, *, plain: bool
) -> dict[str, SetupWords]:
    """Load the words of the set-ups `names` from language `source` to `target`, from `path` or, None, as shipped.

    With `plain`, set-ups without a system message are continued as plain text. Raises `SpecError` for a file that
    cannot be read, a set-up or code that it does not know, the same language twice, or a set-up with an example where
    the file has none in one of the languages.
    """
    origin = "the shipped words" if path is None else str(path)
    try:
        file = validate_words(_File, (path or WORDS).read_bytes().decode(), origin)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"--words: cannot read {path}: {error}") from None
    if source == target:
        raise SpecError(f"--from and --to are both {source}: name two languages")
    if not names or len(set(names)) < len(names) or not set(names) <= file.setups.keys():
        raise SpecError(
            f"--setups {','.join(names)}: name one or more of {', '.join(file.setups)}, each once; they are those of "
            f"{origin}"
        )
    if unknown := [code for code in (source, target) if code not in file.languages]:
        raise SpecError(f"{origin}: no language {unknown[0]!r}: the codes are {', '.join(file.languages)}")
    return {name: _fill(file, name, source, target, origin, plain=plain) for name in names}


def _fill(file: _File, name: str, source: str, target: str, origin: str, *, plain: bool) -> SetupWords:
    setup = file.setups[name]
    values = {"source": file.languages[source], "target": file.languages[target], "question": "$question"}
    for part, code in (("example_source", source), ("example_target", target)):
        if (example := file.example.get(code)) is not None:
            values[part] = render_layout(QuestionText("", example.stem, tuple(enumerate(example.options, start=1))))
        elif f"${part}" in setup.user:
            raise SpecError(
                f"{origin} has no example in {code}, and setup {name} shows one: leave {name} out of --setups, or add "
                "an example in the file of --words"
            )

    def substitute(text: str) -> str:
        try:
            return Template(text).substitute(values)
        except (KeyError, ValueError) as error:
            raise SpecError(f"{origin}: {name}: {error} is not allowed after a $") from None

    if "$question" not in setup.user:
        raise SpecError(f"{origin}: {name}: user lacks $question, the place of the question")
    return SetupWords(
        system=None if setup.system is None else substitute(setup.system),
        user=substitute(setup.user),
        keywords=tuple(map(substitute, file.keywords)),
        plain=plain and setup.system is None,
    )


class Translate(AskingProgram):
    """Translates one text in the words of one set-up; the answer in words is the reply, cleaned to the translation."""

    def __init__(self, setup: str, words: Mapping[str, Any]) -> None:  # noqa: ARG002 - it names the run
        """Take the words as `SetupWords` has them; where they are plain text, any keyword of theirs ends the reply."""
        super().__init__()
        self.words = SetupWords.model_validate(words)
        self.translate = dspy.Predict("source -> reply")

    async def aforward(self, question: Task) -> dspy.Prediction:
        """Ask once, never a second time; the reply stops where it opens a part of the prompt again, or an option behind
        the last one.
        """
        source, words = text_of_task(question), self.words
        # A chat model ends by itself, and providers allow few stop strings.
        labels = words.keywords[: None if words.plain else 2]
        stop = (*(f"\n{label}" for label in labels if label), f"\n{source.numbers[-1] + 1}. ")
        system = [] if words.system is None else [{"role": "system", "content": words.system}]
        user = {"role": "user", "content": Template(words.user).safe_substitute(question=render_layout(source))}
        generation = await self.ask(self.translate, [*system, user], {"stop": stop}, plain=words.plain)
        text = clean_reply(generation.words, source.numbers, words.keywords) or None
        return dspy.Prediction(text=text, generation=replace(generation, text=generation.words))

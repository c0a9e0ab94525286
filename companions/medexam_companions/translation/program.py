"""The words that ask for a translation, and the DSPy program that asks: one call a question, never a second.

The words are shipped as data, or a user's own file of the same form. A language is named by its code if the file knows
it, and by its own name, such as `Basque`, if not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import dspy
from pydantic import Field

from medexam.errors import SpecError
from medexam.frozen_model import FrozenModel
from medexam.inputs import read_regular
from medexam.model_calls import Dialogue, Generation, Sampling
from medexam.programs import AskingProgram, Call, ProgramOutput, Steps
from medexam.questions import Task
from medexam.signatures import Fields, Signature, SingleCallAdapter, validate_words
from medexam_companions.translation.layout import QuestionText, render_layout, text_of_task
from medexam_companions.translation.validity import clean_reply

WORDS = resources.files("medexam_companions.translation") / "words"
SETUPS = ("zero_shot", "one_shot", "expert")
"""The shipped ones; a file of one's own may hold others."""
PROGRAM = "translate"
"""The program's name in a spec."""
REPLY_TOKENS = 1024
"""Default budget of a reply: the longest question of ten years of exams has some 400 words."""
_EXAMPLE = ("example_source", "example_target")


@dataclass(frozen=True)
class SetupWords:
    """The words of one set-up for one pair of languages."""

    setup: str
    system: str | None
    user: str
    """With `$question` where the question goes."""
    keywords: tuple[str, ...]
    """What opens a part of the prompt; where a reply writes one again, the translation has ended."""

    def render_user(self, source: QuestionText) -> str:
        """Render the user's turn for a question."""
        return Template(self.user).safe_substitute(question=render_layout(source))

    def to_json(self) -> dict[str, Any]:
        """Convert the words to data, for the identity of what they ask for."""
        return {"system": self.system, "user": self.user, "keywords": list(self.keywords)}


class _Setup(FrozenModel):
    system: str | None = None
    user: str


class _Example(FrozenModel):
    stem: str
    options: list[str] = Field(min_length=2)


class _File(FrozenModel):
    languages: dict[str, str]
    keywords: list[str]
    setups: dict[str, _Setup] = Field(min_length=1)
    example: dict[str, _Example] = Field(default_factory=dict)


def load_setups(names: Sequence[str], source: str, target: str, path: Path | None) -> tuple[SetupWords, ...]:
    """Load the words of the set-ups `names` from language `source` to `target`, from `path` or, None, as shipped.

    Raises `SpecError` for a file that cannot be read, a set-up or code that it does not know, the same language twice,
    or a set-up with an example where the file has none in one of the languages.
    """
    file, origin = _read(path)
    if source == target:
        raise SpecError(f"--from and --to are both {source}: name two languages")
    if unknown := [name for name in names if name not in file.setups]:
        raise SpecError(f"{origin} has no setup {unknown[0]!r}: the choices are {', '.join(file.setups)}")
    if not names or len(set(names)) < len(names):
        raise SpecError(f"--setups is empty, or names one twice: the choices are {', '.join(file.setups)}")
    return tuple(_words(file, name, source, target, origin) for name in names)


def _words(file: _File, name: str, source: str, target: str, origin: str) -> SetupWords:
    setup = file.setups[name]
    substitutions = {
        "source": _name(file, source, origin),
        "target": _name(file, target, origin),
        "question": "$question",
    }
    if any(f"${word}" in setup.user for word in _EXAMPLE):
        if missing := [code for code in (source, target) if code not in file.example]:
            raise SpecError(
                f"{origin} has no example in {missing[0]}, and setup {name} shows one: leave {name} out of --setups, "
                "or add an example in the file of --words"
            )
        substitutions |= {
            word: _example(file.example[code]) for word, code in zip(_EXAMPLE, (source, target), strict=True)
        }
    try:
        system = None if setup.system is None else Template(setup.system).substitute(substitutions)
        user = Template(setup.user).substitute(substitutions)
        keywords = tuple(Template(keyword).substitute(substitutions) for keyword in file.keywords)
    except (KeyError, ValueError) as error:
        raise SpecError(f"{origin}: {name}: {error} is not allowed after a $") from None
    if "$question" not in user:
        raise SpecError(f"{origin}: {name}: user lacks $question, the place of the question")
    return SetupWords(name, system, user, keywords)


def _name(file: _File, code: str, origin: str) -> str:
    if code in file.languages:
        return file.languages[code]
    if len(code) > 3 and code[:1].isupper():
        return code
    raise SpecError(
        f"{origin} does not know the language {code!r}: the codes are {', '.join(file.languages)}; or write its name, "
        "such as Swedish"
    )


def _example(example: _Example) -> str:
    return render_layout(QuestionText("example", example.stem, tuple(enumerate(example.options, start=1))))


def _read(path: Path | None) -> tuple[_File, str]:
    if path is None:
        origin = "the shipped words"
        text = (WORDS / "translate.yaml").read_text(encoding="utf-8")
    else:
        origin = str(path)
        try:
            text = read_regular(path).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(f"--words: cannot read {path}: {error}") from None
    return validate_words(_File, text, origin), origin


class TranslateQuestion(dspy.Signature):
    """Translate a multiple-choice question."""

    source: QuestionText = dspy.InputField()
    reply: str = dspy.OutputField()


class TranslationAdapter(SingleCallAdapter):
    """Asks in the words of one set-up; a prediction carries `generation`, the reply as the engine gave it.

    The reply stops where it opens a part of the prompt again, or an option behind the last one.
    """

    def __init__(self, words: SetupWords, *, plain: bool) -> None:
        """Take the words; with `plain`, the reply continues them as plain text, and any keyword of theirs ends it."""
        super().__init__()
        self.words = words
        self.plain = plain

    def format(self, signature: Signature, demos: list[Fields], inputs: Fields) -> list[dict[str, str]]:  # noqa: ARG002
        """Render the turns of the prompt."""
        system = [] if self.words.system is None else [{"role": "system", "content": self.words.system}]
        return [*system, {"role": "user", "content": self.words.render_user(inputs["source"])}]

    def build_dialogue(self, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields) -> Dialogue:
        """Build the turns, and say where to stop."""
        # A chat model ends by itself, and providers allow few stop strings.
        labels = [keyword for keyword in self.words.keywords[: None if self.plain else 2] if keyword]
        stop = (*(f"\n{label}" for label in labels), f"\n{inputs['source'].numbers[-1] + 1}. ")
        turns = self.format(signature, demos, inputs)
        return Dialogue.of(turns, Sampling.of({**settings, "stop": stop}), plain=self.plain)

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:  # noqa: ARG002
        """Read what was said, without what was thought."""
        return {"reply": generation.words, "generation": replace(generation, reply=generation.words)}


class Translate(AskingProgram):
    """Translates one text in the words of one set-up; the answer in words is the reply, cleaned to the translation."""

    adapter: TranslationAdapter

    def __init__(self, setup: str, words: Mapping[str, Any]) -> None:
        """Take the words as `SetupWords.to_json` gives them; with `plain`, the reply continues them as plain text."""
        setup_words = SetupWords(setup, words["system"], words["user"], tuple(words["keywords"]))
        super().__init__(TranslationAdapter(setup_words, plain=words.get("plain", False)))
        self.translate = dspy.Predict(TranslateQuestion)

    def steps(self, question: Task) -> Steps:
        """Yield one call, never a second."""
        prediction = yield Call(self.translate, {"source": text_of_task(question)})
        return ProgramOutput(text=self._clean(question, prediction.reply), generation=prediction.generation)

    def _clean(self, question: Task, reply: str) -> str | None:
        return clean_reply(reply, text_of_task(question).numbers, self.adapter.words.keywords) or None

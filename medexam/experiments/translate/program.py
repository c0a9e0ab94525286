"""The DSPy program that translates one question, and the adapter that asks for it: one call, never a second.

It gives the reply as it came; what of it is the translation is for `medexam.datasets.translate` to say.
"""

from typing import Any

import dspy
from dspy.lm15 import Config, Message, Request, Response, TextPart

from medexam.datasets.translate import QuestionText
from medexam.experiments.translate.prompts import SetupWords
from medexam.signatures import Generation
from medexam.signatures.single_call import Fields, Signature, SingleCallAdapter

REPLY_TOKENS = 1024
"""Default budget of a reply: the longest question of HEAD-QA v1 has some 400 words."""
_CONFIG = ("max_tokens", "temperature", "top_p", "seed")


class TranslateQuestion(dspy.Signature):
    """Translate a multiple-choice question."""

    source: QuestionText = dspy.InputField()
    reply: str = dspy.OutputField()


class TranslationAdapter(SingleCallAdapter):
    """Asks in the words of one set-up; a prediction carries `generation`, the reply as the engine gave it.

    The reply stops where it opens a part of the prompt again, or an option behind the last one.
    """

    def __init__(self, words: SetupWords) -> None:
        super().__init__()
        self.words = words

    def format(self, signature: Signature, demos: list[Fields], inputs: Fields) -> list[dict[str, str]]:  # noqa: ARG002
        """The turns of the prompt."""
        system = [] if self.words.system is None else [{"role": "system", "content": self.words.system}]
        return [*system, {"role": "user", "content": self.words.render_user(inputs["source"])}]

    def build_request(
        self, model: str, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> Request:
        """The turns, and where to stop."""
        config: dict[str, Any] = {name: settings[name] for name in _CONFIG if settings.get(name) is not None}
        labels = [keyword for keyword in self.words.keywords[:2] if keyword]
        config["stop"] = (*(f"\n{label}" for label in labels), f"\n{inputs['source'].numbers[-1] + 1}. ")
        *before, shown = self.format(signature, demos, inputs)
        return Request(
            model=model,
            system=before[0]["content"] if before else None,
            messages=(Message.user(shown["content"]),),
            config=Config(**config),
        )

    def read_response(self, signature: Signature, inputs: Fields, response: Response) -> Fields:  # noqa: ARG002
        """What was said, without what was thought."""
        said = "".join(part.text for part in response.message.parts if isinstance(part, TextPart))
        generation = Generation(
            reply=said,
            finish_reason=response.finish_reason,
            model=response.model,
            prompt_tokens=response.usage.input_tokens,
            completion_tokens=response.usage.output_tokens,
        )
        return {"reply": said, "generation": generation}


class Translate(dspy.Module):
    """Translates one question in the words of one set-up.

    Called with `question=`, a `QuestionText`, it returns a `dspy.Prediction` as the programs that answer do: `answer`
    and `rationale` are None, `generations` holds the reply.
    """

    def __init__(self, words: SetupWords, max_tokens: int | None = None) -> None:
        super().__init__()
        self.adapter = TranslationAdapter(words)
        self.translate = dspy.Predict(TranslateQuestion, max_tokens=max_tokens or REPLY_TOKENS)

    def forward(self, question: QuestionText) -> dspy.Prediction:
        """Translate one question."""
        with dspy.context(adapter=self.adapter):
            return _said(self.translate(source=question))

    async def aforward(self, question: QuestionText) -> dspy.Prediction:
        """Translate one question without blocking."""
        with dspy.context(adapter=self.adapter):
            return _said(await self.translate.acall(source=question))


def _said(said: dspy.Prediction) -> dspy.Prediction:
    return dspy.Prediction(answer=None, rationale=None, generations=[said.generation])

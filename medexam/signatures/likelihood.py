"""Reading options instead of a reply: the signature, and the adapter that makes a question's context and texts.

The instructions of the signature are the words around the question, so rewriting the instructions rewrites them.
"""

from dataclasses import replace
from string import Template
from typing import Literal

import dspy

from medexam.model_calls import ContinuationLogprobs, ContinuationRequest, Dialogue, Generation, ReadBy, Sampling
from medexam.questions import Question
from medexam.signatures.single_call import Fields, Signature, SingleCallAdapter


class WeighOptions(dspy.Signature):
    """Tell how likely each option of a multiple-choice question is as what follows it."""

    question: Question = dspy.InputField()
    reading: ContinuationLogprobs = dspy.OutputField(
        desc="log-probabilities of the options' tokens, in the order of the options"
    )


class LikelihoodAdapter(SingleCallAdapter):
    """Formats `WeighOptions` and takes its reading; a prediction carries `generation` too, without a reply.

    Options are read behind a space where the context is plain text that does not end in white space, and at the very
    beginning of the assistant's turn where it is a dialogue.
    """

    def __init__(
        self,
        *,
        read: Literal["option_text", "label"],
        read_by: ReadBy | Literal["auto"],
        chat_template: bool,
        shows_options: bool,
    ) -> None:
        """Take the settings of a likelihood; `shows_options` says whether the options stand in the context."""
        super().__init__()
        self.read = read
        self.read_by = read_by
        self.chat_template = chat_template
        self.shows_options = shows_options

    def format(self, signature: Signature, demos: list[Fields], inputs: Fields) -> list[dict[str, str]]:  # noqa: ARG002
        """Write the context as one user turn."""
        return [{"role": "user", "content": self._context(signature, inputs)}]

    def build_dialogue(
        self,
        settings: Fields,  # noqa: ARG002
        signature: Signature,
        demos: list[Fields],  # noqa: ARG002
        inputs: Fields,
    ) -> Dialogue:
        """Build the context, and the texts that are read behind it; nothing is sampled, so no setting matters."""
        context = self._context(signature, inputs)
        lead = "" if self.chat_template or context[-1:].isspace() else " "
        continuation_request = ContinuationRequest(
            texts=tuple(lead + text for text in option_texts(self.read, inputs["question"])),
            read_by=self.read_by,
            given_opening=self.read == "label",
            template=self.chat_template,
        )
        turns = [{"role": "user", "content": context}]
        return Dialogue(turns, "", Sampling(), continuations=continuation_request)

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:  # noqa: ARG002
        """Take the reading, and who gave it."""
        return {"reading": generation.reading, "generation": replace(generation, reply=None)}

    def _context(self, signature: Signature, inputs: Fields) -> str:
        question = inputs["question"]
        question_text = question.printed if self.shows_options else question.asked
        return Template(signature.instructions).substitute(
            question="\n\n".join(filter(None, (inputs.get("passages"), question_text)))
        )


def option_texts(read: Literal["option_text", "label"], question: Question) -> list[str]:
    """Return what is read for each option: its words or its printed number."""
    return [str(option.number) if read == "label" else option.text for option in question.options]

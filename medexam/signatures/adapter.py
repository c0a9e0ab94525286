"""The DSPy signatures of questions, and the adapters between them and a model.

The instructions of a signature are the words of a prompt file, so optimizers that rewrite instructions rewrite the
prompt. An adapter asks once and never again, whatever the reply looks like. A call may begin the reply for the model
and may leave it nothing but one of given strings, such as the question's own option numbers; how an engine enforces
that is not known here.
"""

from dataclasses import dataclass, replace
from string import Template
from typing import Any

import dspy

from medexam.model_calls import (
    WITHHELD,
    ContinuationLogprobs,
    ContinuationRequest,
    Dialogue,
    Ending,
    Generation,
    Sampling,
    join_thinking,
)
from medexam.questions import Question, Task
from medexam.signatures.answer_format import (
    answer_closing,
    answer_opening,
    find_answers,
    parse_answer,
    plain_forms,
    render_answer,
)
from medexam.signatures.citations import CLOSING, OPENING, drop_citations, read_citation
from medexam.signatures.lenient import read_leniently
from medexam.signatures.thinking import end_turn, split_thinking
from medexam.signatures.word_files import Turn, fill_task
from medexam.specs.programs.needs import AnswerForm, AnswerFormat
from medexam.specs.programs.words import LikelihoodSpec

Signature = type[dspy.Signature]
Fields = dict[str, Any]


class SingleCallAdapter:
    """Base of the adapters: `build_dialogue` says what is asked, `read_outputs` what came out."""

    def build_dialogue(self, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields) -> Dialogue:
        """Build what is asked of the model under the language model's settings."""
        raise NotImplementedError

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:
        """Read the signature's outputs from a reply, and whatever else the programs keep."""
        raise NotImplementedError


def call_settings(lm: dspy.LM, overrides: Fields) -> Fields:
    """Return the settings of a call over the model's own; a reply ends at what either of them names."""
    stops = (overrides.get("stop") or (), lm.kwargs.get("stop") or ())
    stop = [text for texts in stops for text in ([texts] if isinstance(texts, str) else texts)]
    return {**lm.kwargs, **overrides, **({"stop": stop} if stop else {})}


class AnswerQuestion(dspy.Signature):
    """Answer a multiple-choice question."""

    question: Question = dspy.InputField()
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


class ReasonAndAnswer(dspy.Signature):
    """Reason about a multiple-choice question, then answer it."""

    question: Question = dspy.InputField()
    rationale: str = dspy.OutputField(desc="brief reasoning about the options")
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


class ReasonFirst(dspy.Signature):
    """Reason about a multiple-choice question up to the point of answering."""

    question: Question = dspy.InputField()
    rationale: str = dspy.OutputField(desc="brief reasoning about the options")


class AnswerAfterReasoning(dspy.Signature):
    """Answer a multiple-choice question after the reasoning that is given."""

    question: Question = dspy.InputField()
    rationale: str = dspy.InputField(desc="the assistant's own reasoning so far")
    answer: int = dspy.OutputField(desc="printed number of the chosen option")


class CitePassage(dspy.Signature):
    """Name the passage that supports the answer that was given."""

    question: Question = dspy.InputField()
    reply: str = dspy.InputField(desc="the assistant's own reply so far, with its answer")
    count: int = dspy.InputField(desc="how many passages are shown")
    citation: int = dspy.OutputField(desc="number of the passage, 0 for none")


class WeighOptions(dspy.Signature):
    """Tell how likely each option of a multiple-choice question is as what follows it."""

    question: Question = dspy.InputField()
    reading: ContinuationLogprobs = dspy.OutputField(
        desc="log-probabilities of the options' tokens, in the order of the options"
    )


@dataclass(frozen=True, slots=True)
class AskedTask:
    """A task as one call shows it."""

    task: Task
    prefill: str = ""
    """How the reply is prefilled."""
    choices: tuple[str, ...] = ()
    """What the reply may continue with, one of these and nothing else; empty leaves it free."""
    context: str | None = None
    """What is shown instead of the task's own context; None: that context."""
    count: int = 0
    """How many parts `context` has, where it is shown in numbered parts."""


class AnswerTask(dspy.Signature):
    """Answer a question in words."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="the answer alone")


def after_thinking(signature: Signature) -> Signature:
    """Return the signature with thinking that was cut off and is closed; its answer is chosen."""
    field = dspy.InputField(desc="the assistant's own thinking so far")
    extended: Signature = signature.append("thinking", field, str)
    return extended


def behind_passages(signature: Signature) -> Signature:
    """Return the signature with passages that stand before the question."""
    field = dspy.InputField(desc="passages that may help, most relevant first")
    extended: Signature = signature.prepend("passages", field, str)
    return extended


READING = "medexam_reading"
"""Setting of DSPy's context: how replies are read, a `Reading`; `strict` unless it is set."""


class ExamAdapter(SingleCallAdapter):
    """Asks for the answer to an exam question, the reasoning before it, or the passage behind it.

    The instructions are the system turn, or a user turn of their own behind an empty system turn. A demonstration is a
    user turn and an assistant turn, as in the paper's figure 7. Besides the signature's outputs, a
    prediction carries `generation`, the reply that they were read from; `answer` is None when it held no legal option.
    """

    def __init__(
        self, answer_format: AnswerFormat = "free", answer_form: AnswerForm = "braces", turn: Turn = "system"
    ) -> None:
        self.answer_format = answer_format
        self.answer_form = answer_form
        self.turn = turn
        """Whose turn the instructions are."""
        self.weighs = False
        """Whether a guided answer is the option that the model finds likeliest, told with all options' probabilities as
        `reading`, instead of one that it writes."""

    def build_dialogue(self, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields) -> Dialogue:
        """Build the prompt as turns, with the question's picture if it is shown, and the choice of a guided answer."""
        question = _question(inputs)
        turns = [{"role": self.turn, "content": signature.instructions}]
        if self.turn != "system":
            turns.insert(0, {"role": "system", "content": ""})
        for demo in demos:
            solved = [demo["rationale"]] if demo.get("rationale") and "rationale" in signature.fields else []
            if demo.get("answer") is not None:
                solved.append(render_answer(demo["answer"], self.answer_form))
            turns.append({"role": "user", "content": _question(demo).printed})
            turns.append({"role": "assistant", "content": "\n\n".join(solved)})
        turns.append(_user(inputs, question.printed))
        outputs, chooses, beginning = self._plan(signature, inputs)
        if beginning:
            turns.append({"role": "assistant", "content": beginning})
        choices, continuations = None, None
        if "citation" in outputs:
            choices = tuple(map(str, range(inputs["count"] + 1)))
        elif chooses:
            choices = tuple(map(str, question.option_numbers))
            if self.weighs:
                choices, continuations = None, ContinuationRequest(texts=choices, given_opening=True, template=True)
        pictures = () if question.picture is None else (question.picture,)
        sampling = Sampling.of(settings)
        return Dialogue.of(turns, sampling, choices=choices, continuations=continuations, pictures=pictures)

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:
        """Read the answer, the citation and the rationale that a reply holds, the reply itself, and what was weighed.

        A reply that was refused or filtered holds no answer. Under the setting `READING` of `lenient`, where the
        strict reader reads no answer, the lenient one's.
        """
        outputs, chooses, beginning = self._plan(signature, inputs)
        ending, cites = generation.ending, "citation" in outputs
        if (chooses or cites) and ending not in WITHHELD:
            closing = CLOSING if cites else answer_closing(self.answer_form)
            generation = replace(generation, reply=f"{beginning}{generation.reply}{closing}")
            ending = Ending.COMPLETE
        reply = generation.reply or ""
        thinking, content = split_thinking(reply)
        content = end_turn(content)
        fields: Fields = {"generation": generation}
        if "answer" in outputs:
            answer_text = "" if ending in WITHHELD else content
            if chooses:
                # Nothing that the model reasoned before can deny or end what it was then left to choose.
                answer_text = answer_text and reply[max(reply.rfind(answer_opening(self.answer_form)), 0) :]
            question, cut = _question(inputs), ending is Ending.CUT
            how = {"reasoned": "rationale" in outputs or "rationale" in inputs, "cut": cut}
            answer = parse_answer(answer_text, question.option_numbers, **how)
            if answer is None and dspy.settings.get(READING) == "lenient" and ending in (Ending.COMPLETE, Ending.CUT):
                texts = {option.number: option.text for option in question.options}
                # A careful marker takes no passage's number for an option's.
                words = drop_citations(content) if inputs.get("passages") else content
                answer = read_leniently(words, texts, **how)
            fields["answer"] = answer
        if cites:
            fields["citation"] = read_citation(content, inputs["count"])
        if "rationale" in outputs:
            content = plain_forms(content)
            answers = find_answers(content)
            reasoning = content[: answers[-1][0]] if answers else content
            fields["rationale"] = "\n\n".join(part for part in (thinking, reasoning.strip()) if part) or None
        return {**fields, "reading": generation.reading} if chooses and self.weighs else fields

    def _plan(self, signature: Signature, inputs: Fields) -> tuple[set[str], bool, str]:
        """Return the outputs, whether the answer is a legal number and nothing else, and how the reply is begun."""
        outputs, opening = {*signature.output_fields}, answer_opening(self.answer_form)
        if "thinking" in inputs:
            return outputs, True, join_thinking(inputs["thinking"], opening)
        if "citation" in outputs:
            return outputs, False, f"{inputs['reply']} {OPENING}"
        chooses = self.answer_format == "guided" and outputs == {"answer"}
        rationale = f"{inputs['rationale']}\n\n" if inputs.get("rationale") else ""
        return outputs, chooses, rationale + opening if chooses else rationale


class LikelihoodAdapter(SingleCallAdapter):
    """Asks `WeighOptions` and takes its reading; a prediction carries `generation` too, without a reply.

    Options are read behind a space where the context is plain text that does not end in white space, and at the very
    beginning of the assistant's turn where it is a dialogue.
    """

    def __init__(self, spec: LikelihoodSpec) -> None:
        self.spec = spec

    def build_dialogue(self, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields) -> Dialogue:  # noqa: ARG002
        """Build the context, and the texts that are read behind it; nothing is sampled, so no setting matters."""
        spec, question = self.spec, inputs["question"]
        shown = _user(inputs, question.printed if spec.shows_options else question.asked)["content"]
        context = Template(signature.instructions).substitute(question=shown)
        lead = "" if spec.chat_template or context[-1:].isspace() else " "
        request = ContinuationRequest(
            texts=tuple(
                f"{lead}{option.number if spec.read == 'label' else option.text}" for option in question.options
            ),
            read_by=spec.read_by,
            given_opening=spec.read == "label",
            template=spec.chat_template,
        )
        return Dialogue([{"role": "user", "content": context}], "", Sampling(), continuations=request)

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:  # noqa: ARG002
        """Take the reading, and who gave it."""
        return {"reading": generation.reading, "generation": replace(generation, reply=None)}


class TaskAdapter(SingleCallAdapter):
    """Asks `AnswerTask`, whose instructions are a template of a words file.

    A prediction carries `answer`, what was said behind any thinking and with what the reply was begun with, and
    `generation`, the reply itself.
    """

    def __init__(self, system: str) -> None:
        """Take the system turn; empty: none."""
        self.system = system

    def build_dialogue(self, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields) -> Dialogue:  # noqa: ARG002
        """Build the prompt as messages, with the choices, if any."""
        asked: AskedTask = inputs["asked"]
        turns = [{"role": "system", "content": self.system}] if self.system else []
        turns.append(
            _user(inputs, fill_task(signature.instructions, asked.task, context=asked.context, count=asked.count))
        )
        if asked.prefill:
            turns.append({"role": "assistant", "content": asked.prefill})
        return Dialogue.of(turns, Sampling.of(settings), choices=tuple(asked.choices) or None)

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:  # noqa: ARG002
        """Read what was said, and the reply itself, behind the words that it was begun with."""
        generation = replace(generation, reply=inputs["asked"].prefill + (generation.reply or ""))
        _, answer = split_thinking(generation.reply or "")
        return {"answer": answer.strip(), "generation": generation}


def _user(inputs: Fields, text: str) -> dict[str, str]:
    """Return the user's turn: a text behind the passages, if there are some."""
    return {"role": "user", "content": "\n\n".join(filter(None, (inputs.get("passages"), text)))}


def _question(fields: Fields) -> Question:
    question = getattr(fields["question"], "source", fields["question"])
    return question if isinstance(question, Question) else Question.model_validate(question)

"""What is asked, in which words, and how the reply is read: floor 2."""

from medexam.model_calls import SAMPLES, Generation, join_thinking
from medexam.signatures.adapter import (
    AnswerAfterReasoning,
    AnswerQuestion,
    CitePassage,
    ExamAdapter,
    ReasonAndAnswer,
    ReasonFirst,
    after_thinking,
    behind_passages,
)
from medexam.signatures.answer_format import answer_opening, find_answers, parse_answer, render_answer
from medexam.signatures.likelihood import LikelihoodAdapter, WeighOptions, option_texts
from medexam.signatures.prompts import (
    LikelihoodWords,
    Prompt,
    SolvedQuestion,
    Turn,
    load_examples,
    load_likelihood_words,
    load_prompt,
    load_words,
)
from medexam.signatures.rendering import render_question
from medexam.signatures.single_call import add_usage
from medexam.signatures.span_alignment import FoundSpan, find_span
from medexam.signatures.task_adapter import FORMATS, AskedTask, GiveAnswer, QuoteContext, TaskAdapter
from medexam.signatures.task_words import TaskWords, fill, load_task_words
from medexam.signatures.thinking import is_cut_in_thinking, split_thinking

__all__ = [
    "FORMATS",
    "SAMPLES",
    "AnswerAfterReasoning",
    "AnswerQuestion",
    "AskedTask",
    "CitePassage",
    "ExamAdapter",
    "FoundSpan",
    "Generation",
    "GiveAnswer",
    "LikelihoodAdapter",
    "LikelihoodWords",
    "Prompt",
    "QuoteContext",
    "ReasonAndAnswer",
    "ReasonFirst",
    "SolvedQuestion",
    "TaskAdapter",
    "TaskWords",
    "Turn",
    "WeighOptions",
    "add_usage",
    "after_thinking",
    "answer_opening",
    "behind_passages",
    "fill",
    "find_answers",
    "find_span",
    "is_cut_in_thinking",
    "join_thinking",
    "load_examples",
    "load_likelihood_words",
    "load_prompt",
    "load_task_words",
    "load_words",
    "option_texts",
    "parse_answer",
    "render_answer",
    "render_question",
    "split_thinking",
]

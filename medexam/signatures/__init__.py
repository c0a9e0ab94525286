"""What is asked, in which words, and how the reply is read: floor 2."""

from medexam.signatures.adapter import ExamAdapter, Generation
from medexam.signatures.answer_format import answer_opening, find_answers, parse_answer, render_answer
from medexam.signatures.likelihood import LikelihoodAdapter, WeighOptions, option_texts
from medexam.signatures.prompts import (
    LikelihoodWords,
    Prompt,
    SolvedQuestion,
    load_examples,
    load_likelihood_words,
    load_prompt,
    load_words,
)
from medexam.signatures.rendering import render_question
from medexam.signatures.signatures import (
    AnswerAfterReasoning,
    AnswerQuestion,
    Reason,
    ReasonAndAnswer,
    behind_passages,
)
from medexam.signatures.thinking import join_thinking, split_thinking

__all__ = [
    "AnswerAfterReasoning",
    "AnswerQuestion",
    "ExamAdapter",
    "Generation",
    "LikelihoodAdapter",
    "LikelihoodWords",
    "Prompt",
    "Reason",
    "ReasonAndAnswer",
    "SolvedQuestion",
    "WeighOptions",
    "answer_opening",
    "behind_passages",
    "find_answers",
    "join_thinking",
    "load_examples",
    "load_likelihood_words",
    "load_prompt",
    "load_words",
    "option_texts",
    "parse_answer",
    "render_answer",
    "render_question",
    "split_thinking",
]

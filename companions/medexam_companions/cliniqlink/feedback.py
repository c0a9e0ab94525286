"""What a team learns from its scores: by format, what its outputs' form has cost, and its worst answers.

Nothing here shows what is expected, unless the organisers say so: the questions of a hidden test set stay usable.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from medexam.benchmarks import find_benchmark
from medexam.experiments import join_markdown, on_one_line, render_table
from medexam.questions import Task
from medexam.tables import NONE, Table, percent
from medexam_companions.cliniqlink.scoring import Answer
from medexam_companions.cliniqlink.submissions import Submission

WORST = 3
"""Answers of each format that are shown."""
_SHOWN = 300
"""Characters of a question or an answer that are shown."""
ADVICE: Mapping[str, str] = {
    "empty": "Write an answer: an empty one scores 0.",
    "unclosed reasoning": "Close `<think>` by `</think>`, or raise the reply's budget: open reasoning is scored as the "
    "answer.",
    "no verdict": "Begin the answer with True or False, with nothing before it: anything else scores 0.",
    "trailing text": "Text after True or False costs nothing; it may be left out.",
    "not an option": "Write the text of one option and nothing else: a letter, or words around it, scores 0.",
    "unmatched piece": (
        "Write options alone, between commas on one line: one piece that is not an option loses the whole item."
    ),
    "echo": "Do not repeat the question: it scores 0.",
    "no step": "Name the wrong step as `Step N`.",
    "no explanation": "Mark the explanation by `Explanation:`: otherwise the whole answer counts as the explanation.",
}
"""Kind of malformed output -> what to do about it."""


def write_feedback(submission: Submission, *, show_expected: bool) -> str:
    """Write a page in Markdown: scores, losses by form with an example each, and the worst answers of each format."""
    scores = f"{submission.metrics.n:,} questions are scored. In percent: {overall_text(submission)}"
    parts = [f"# Feedback on {on_one_line(submission.name)}", scores]
    if submission.notes:
        parts.append("\n".join(f"- {on_one_line(note)}" for note in submission.notes))
    parts += ["## Scores by format", render_table(format_table(submission))]
    if flaws := list(_flaw_parts(submission)):
        parts += ["## What the form of the outputs has cost", *flaws]
    return join_markdown([*parts, "## Answers with the lowest scores", *_worst_parts(submission, show_expected)])


def overall_text(submission: Submission) -> str:
    """Say the overall scores of both profiles, in percent."""
    values = {name: percent(measure.value) for name, measure in submission.metrics.measures.items()}
    return (
        f"overall {values['published']} by the released code's rules, {values['paper']} by the paper's; "
        f"{values['published_forgiving']} and {values['paper_forgiving']} if the form of closed answers did not count."
    )


def format_table(submission: Submission) -> Table:
    """Show the scores of each format by both profiles, and what its closed answers lose by their form alone."""
    headers = ("Format", "n", "No answer", "Published", "Paper", "Lost by form", "BLEU", "METEOR", "ROUGE")
    unanswered: defaultdict[str, int] = defaultdict(int)
    for task in submission.items.questions:
        prediction = submission.predictions.get(task.key)
        unanswered[task.group] += prediction is None or prediction.text is None
    rows = []
    for group, measures in submission.metrics.by_group.items():
        values = {name: measure.value for name, measure in measures.items()}
        kind, strict = values.get("published_forgiving"), values["published"]
        lost = NONE if kind is None or strict is None else percent(kind - strict)
        rows.append(
            (
                group,
                f"{measures['published'].n:,}",
                f"{unanswered[group]:,}",
                percent(strict),
                percent(values["paper"]),
                lost,
                *(percent(values.get(name)) for name in ("bleu", "meteor", "rouge")),
            )
        )
    return Table("By format", headers, tuple(rows))


def _flaw_parts(submission: Submission) -> Iterator[str]:
    """Yield a part for each format and kind of malformed output: how many, what to do, and the first of them."""
    first: dict[tuple[str, str], Any] = {}
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    for task in submission.items.questions:
        prediction = submission.predictions.get(task.key)
        text = None if prediction is None else prediction.text
        for flaw in Answer.of(task, submission.items.golds[task.key], text).find_flaws():
            counts[task.group, str(flaw)] += 1
            first.setdefault((task.group, str(flaw)), (task.key, text or ""))
    for (group, kind), count in sorted(counts.items(), key=lambda entry: -entry[1]):
        key, text = first[group, kind]
        line = f"- {group}: {count:,} of kind *{kind}*. {ADVICE[kind]}"
        yield f"{line} First: {key}" + (f", {_quoted(text)}" if text else "")


def _worst_parts(submission: Submission, show_expected: bool) -> Iterator[str]:
    benchmark = find_benchmark(submission.run.record.cell.dataset)
    scores = benchmark.score(submission.items, submission.predictions).items
    by_group: defaultdict[str, list[tuple[Task, str]]] = defaultdict(list)
    for task in submission.items.questions:
        prediction = submission.predictions.get(task.key)
        text = None if prediction is None else prediction.reply if prediction.text is None else prediction.text
        if text is not None and scores["published"].get(task.key, 1.0) < 1.0:
            by_group[task.group].append((task, text))
    for group, answers in by_group.items():
        yield f"### {group}"
        for task, text in sorted(answers, key=lambda answer: scores["published"][answer[0].key])[:WORST]:
            published, paper = (percent(scores[profile][task.key]) for profile in ("published", "paper"))
            question = "\n".join((task.question, *task.options, task.given_answer, *task.given_reasoning))
            line = f"- {task.key}: {published} published, {paper} paper. Question: {_quoted(question)}"
            line += f" Answer: {_quoted(text)}"
            yield f"{line} Expected: {_quoted(_expected(submission, task))}" if show_expected else line


def _expected(submission: Submission, task: Task) -> str:
    """Write what the answer should be; of inverse formats the explanation, for their answer is the wrong one shown."""
    gold = submission.items.golds[task.key]
    return "\n".join((*gold.incorrect_step, gold.incorrect_explanation) if task.given_answer else gold.answers)


def _quoted(text: str) -> str:
    line = on_one_line(text)
    return f'"{line if len(line) <= _SHOWN else line[:_SHOWN] + " […]"}"'

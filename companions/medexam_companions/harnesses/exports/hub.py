"""Runs as a data set for the Hugging Face hub: a Parquet file for each, and a card that says what they hold.

Nothing is sent: `hf upload USER/NAME FOLDER . --repo-type dataset` does that. Each run is a configuration, so that
`datasets.load_dataset(FOLDER, RUN)` reads one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from medexam.experiments import disarm, on_one_line, render_table
from medexam.files import whole_file, write_whole
from medexam.tables import Table, percent
from medexam_companions.harnesses.exports.answers import ExportedAnswer, ExportedRun
from medexam_companions.harnesses.exports.words import ExportedWords, words_schema

LICENCES = {"mit", "apache-2.0", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0"}
"""Licences that the hub knows by these names; any other is `other`."""
CARD = "README.md"
_CHOICE_COLUMNS = (
    "`gold` and `answer` are the printed numbers of options, as in `option_numbers`. If a question stayed",
    "unanswered, `answer` is empty, `reason` says why, and `right` is false: its mean is the accuracy.",
)
_WORDS_COLUMNS = (
    "`gold` holds the expected texts and `text` the answer; `scores` maps each measure to its score, 0 to 1. If a",
    "question stayed unanswered, `text` is empty and `reason` says why. `start` and `end` are the characters of",
    "`context` that a quoted `text` takes. `outputs` is what a module returned, as JSON.",
)


AnyExport = ExportedRun | ExportedWords


def write_hub(runs: Sequence[AnyExport], folder: Path) -> list[Path]:
    """Write the Parquet files and the card; raises `OSError`."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    paths = []
    for run in runs:
        path = folder / "data" / f"{run.run.folder.name}.parquet"
        if isinstance(run, ExportedWords):
            table = pa.Table.from_pylist(list(run.rows()), schema=words_schema())
        else:
            table = pa.Table.from_pylist([_row(run, answer) for answer in run], schema=_schema())
        with whole_file(path) as draft:
            pq.write_table(table, draft, compression="zstd")
        paths.append(path)
    write_whole(folder / CARD, _card(runs))
    return [*paths, folder / CARD]


def _schema() -> Any:
    texts = ("key", "question", "language", "exam", "discipline", "status", "reason", "reply", "rationale", "program")
    types = dict.fromkeys(texts, pa.string()) | {"model": pa.string(), "options": pa.list_(pa.string())}
    types |= dict.fromkeys(("year", "gold", "answer"), pa.int32()) | {"right": pa.bool_()}
    types |= {"option_numbers": pa.list_(pa.int32()), "option_scores": pa.list_(pa.float64())}
    types |= dict.fromkeys(("prompt_tokens", "completion_tokens"), pa.int64()) | {"latency_s": pa.float64()}
    return pa.schema(list(types.items()))


def _row(run: ExportedRun, answer: ExportedAnswer) -> dict[str, Any]:
    question, prediction = answer.question, answer.prediction
    shared_fields = ("answer", "reply", "rationale", "prompt_tokens", "completion_tokens", "latency_s", "program")
    return {
        **{name: getattr(prediction, name) for name in shared_fields},
        "key": question.key,
        "question": question.asked,
        "options": answer.options,
        "option_numbers": list(question.option_numbers),
        "language": question.language,
        "exam": question.exam.name,
        "year": question.exam.year,
        "discipline": question.exam.discipline,
        "gold": answer.gold.number,
        "right": answer.right,
        "status": prediction.status.value,
        "reason": prediction.reason.value if prediction.reason else None,
        "option_scores": prediction.scores_of(question.option_numbers),
        "model": run.model,
    }


def _card(runs: Sequence[AnyExport]) -> str:
    """Write what the hub reads, then what people read; only the latter is Markdown."""
    return f"{_front_matter(runs)}\n{disarm(_description(runs))}"


def _front_matter(runs: Sequence[AnyExport]) -> str:
    licences = {run.items.licence for run in runs if run.items.licence}
    names = {name.lower() for name in licences}
    licence = names.pop() if len(names) == 1 and names <= LICENCES else "other"
    languages = sorted({run.cell.dataset.language for run in runs})
    configs = [
        f"- config_name: {_quoted(run.run.folder.name)}\n  data_files: {_quoted(f'data/{run.run.folder.name}.parquet')}"
        for run in runs
    ]
    lines = [
        "---",
        f"license: {licence}",
        "language:",
        *(f"- {language}" for language in languages),
        "task_categories:",
        "- question-answering",
        "tags:",
        "- evaluation-results",
        "- medical",
        "configs:",
        *configs,
        "---",
        "",
    ]
    return "\n".join(lines)


def _description(runs: Sequence[AnyExport]) -> str:
    in_words = any(isinstance(run, ExportedWords) for run in runs)
    table = Table(
        "Answers",
        ("configuration", "program", "model", "questions of", "n", "score, %" if in_words else "right, %"),
        tuple(
            (
                f"`{run.run.folder.name}`",
                run.run.program,
                str(run.model),
                f"{run.cell.dataset.called}, version {run.run.record.dataset_version}, {run.cell.dataset.language}",
                f"{len(run.answers):,}",
                percent(run.accuracy),
            )
            for run in runs
        ),
        text_columns=4,
    )
    sources = dict.fromkeys(
        f"{run.cell.dataset.called}: {run.items.citation or 'no citation is known'} "
        f"(licence: {run.items.licence or 'not known'})"
        for run in runs
    )
    lines = [
        "# Answers to medical exams",
        "",
        f"Answers of language models to {'' if in_words else 'multiple-choice '}questions, question by question, "
        "written by medexam.",
        "",
        render_table(table),
        "",
        *(_CHOICE_COLUMNS if any(isinstance(run, ExportedRun) for run in runs) else ()),
        *(_WORDS_COLUMNS if in_words else ()),
        "",
        "## Sources of the questions",
        "",
        *(f"- {on_one_line(source)}" for source in sources),
        "",
        "Questions and answers are side by side here: leave these files out of what models are trained on.",
        "",
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

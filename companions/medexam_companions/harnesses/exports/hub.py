"""Runs as a data set for the Hugging Face hub: a Parquet file for each, and a card that says what they hold.

Nothing is sent: `hf upload USER/NAME FOLDER . --repo-type dataset` does that. Each run is a configuration, so that
`datasets.load_dataset(FOLDER, RUN)` reads one.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from medexam.experiments import disarm, on_one_line, render_table
from medexam.files import whole_file, write_whole
from medexam.tables import Table, percent
from medexam_companions.harnesses.exports.answers import ExportedAnswer, ExportedRun, expected_texts

LICENCES = {"mit", "apache-2.0", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0"}
"""Licences that the hub knows by these names; any other is `other`."""
CARD = "README.md"
_TYPES = {
    **dict.fromkeys(("year", "gold", "answer", "start", "end"), pa.int32()),
    **dict.fromkeys(("prompt_tokens", "completion_tokens"), pa.int64()),
    **dict.fromkeys(("options", "given_reasoning"), pa.list_(pa.string())),
    "latency_s": pa.float64(),
    "right": pa.bool_(),
    "option_numbers": pa.list_(pa.int32()),
    "option_scores": pa.list_(pa.float64()),
    "gold_components": pa.list_(pa.struct({"label": pa.string(), "start": pa.int32(), "end": pa.int32()})),
    "scores": pa.map_(pa.string(), pa.float64()),
}
"""Columns that are no text; of answers in words `gold` is a list of texts."""
_FIELDS = ("reply", "rationale", "prompt_tokens", "completion_tokens", "latency_s", "program")


def write_hub(runs: Sequence[ExportedRun], folder: Path) -> list[Path]:
    """Write the Parquet files and the card; raises `OSError`."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    paths = []
    for run in runs:
        path = folder / "data" / f"{run.run.folder.name}.parquet"
        rows = [_row(run, answer) for answer in run.answers]
        types = _TYPES | ({"gold": pa.list_(pa.string())} if run.in_words else {})
        schema = pa.schema([(name, types.get(name, pa.string())) for name in rows[0]])
        with whole_file(path) as draft:
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), draft, compression="zstd")
        paths.append(path)
    names = {run.items.licence.lower() for run in runs if run.items.licence}
    front_matter = {
        "license": names.pop() if len(names) == 1 and names <= LICENCES else "other",
        "language": sorted({run.values["language"] for run in runs}),
        "task_categories": ["question-answering"],
        "tags": ["evaluation-results", "medical"],
        "configs": [{"config_name": path.stem, "data_files": f"data/{path.name}"} for path in paths],
    }
    card = f"---\n{yaml.safe_dump(front_matter, sort_keys=False)}---\n\n{disarm(_description(runs))}"
    write_whole(folder / CARD, card)
    return [*paths, folder / CARD]


def _row(run: ExportedRun, answer: ExportedAnswer) -> dict[str, Any]:
    item, gold, prediction = answer.item, answer.gold, answer.prediction
    row = {
        "key": item.key,
        "question": item.question if run.in_words else item.asked,
        "options": answer.values["options"],
        "language": item.language,
        **{name: getattr(prediction, name) for name in _FIELDS},
        "status": prediction.status.value,
        "reason": prediction.reason.value if prediction.reason else None,
        "model": run.values["model"],
    }
    if not run.in_words:
        return row | {
            "option_numbers": list(item.option_numbers),
            "exam": item.exam.name,
            "year": item.exam.year,
            "discipline": item.exam.discipline,
            "gold": gold.number,
            "answer": prediction.answer,
            "right": answer.values["right"],
            "option_scores": prediction.scores_of(item.option_numbers),
        }
    return row | {
        "group": item.group,
        "context": item.context,
        "given_answer": item.given_answer,
        "given_reasoning": list(item.given_reasoning),
        "gold": expected_texts(item, gold),
        "gold_components": [asdict(component) for component in gold.components],
        "text": prediction.text,
        "alignment": prediction.alignment,
        "start": None if prediction.span is None else prediction.span[0],
        "end": None if prediction.span is None else prediction.span[1],
        "outputs": None if prediction.outputs is None else json.dumps(prediction.outputs, ensure_ascii=False),
        "scores": list(answer.scores.items()),
    }


def _description(runs: Sequence[ExportedRun]) -> str:
    rows = tuple(
        (
            f"`{run.run.folder.name}`",
            run.run.program,
            run.values["model"],
            "{dataset}, version {dataset_version}, {language}".format_map(run.values),
            f"{len(run.answers):,}",
            percent(next(iter(run.means.values()), None)),
        )
        for run in runs
    )
    headers = ("configuration", "program", "model", "questions of", "n", "score, %")
    sources = dict.fromkeys(
        on_one_line(
            f"- {run.values['dataset']}: {run.items.citation or 'no citation is known'} "
            f"(licence: {run.items.licence or 'not known'})"
        )
        for run in runs
    )
    template = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    table = render_table(Table("Answers", headers, rows, text_columns=4))
    return template.format(table=table, sources="\n".join(sources))

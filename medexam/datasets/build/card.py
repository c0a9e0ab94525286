"""The data card of a folder of built exams: what the hub shows, and what the Ministry asks of those who reuse them."""

from collections.abc import Sequence

from medexam.datasets.build.report import BuildReport
from medexam.datasets.catalogue import TERMS
from medexam.questions import Language

NAMES: dict[Language, str] = {
    "en": "English",
    "es": "Spanish",
    "gl": "Galician",
    "it": "Italian",
    "ru": "Russian",
}


def render_card(reports: Sequence[BuildReport]) -> str:
    """A README with the hub's front matter, for the exams of `reports`."""
    languages = sorted({report.language for report in reports})
    front = ["---", "pretty_name: Exams of the Spanish Ministry of Health", "license: other", "language:"]
    front += [f"- {language}" for language in languages]
    front += ["task_categories:", "- question-answering", "- multiple-choice", "tags:", "- medical", "configs:"]
    for language in languages:
        front += [f"- config_name: {language}", "  data_files:", f"  - {language}/*.parquet"]
    rows = [
        f"| {report.name} | {report.discipline} | {report.year} | {NAMES[report.language]} | "
        f"{report.dated or 'not stated'} | {report.printed} | "
        f"{len(report.annulled)} | {len(report.left_out)} | {report.built} | {report.with_images} |"
        for report in reports
    ]
    return "\n".join(
        [
            *front,
            "---",
            "",
            "# Exams of the Spanish Ministry of Health",
            "",
            "Multiple-choice questions of the exams for access to specialised healthcare training, built from the "
            "official booklets and answer keys with `medexam data build`. The fields are those of HEAD-QA v2.",
            "",
            "| Exam | Discipline | Year | Language | Document of | Printed "
            "| Annulled | Left out | Questions | With image |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            "## Fields",
            "",
            "- `name`, `year`, `category`: the exam, its year and its discipline (`nursery` is nursing).",
            "- `qid`: the number printed in the booklet; annulled questions leave gaps. `name` and `qid` are unique.",
            "- `qtext`: what is asked. "
            "Sub- and superscripts stand on the line (`Ca2+`), exponents after a `^` (`10^-6`).",
            "- `answers`: the options, `aid` the printed number and `atext` the text.",
            "- `ra`: the `aid` of the official answer.",
            "- `image`: the picture that the question refers to, or null.",
            "",
            "Questions without an official answer are not included. Each exam's `NAME.report.json` lists them, with "
            "the corrections that were made by hand and the reason of each.",
            "",
            "## Source and terms",
            "",
            TERMS,
            "",
            "Load it with `datasets.load_dataset(FOLDER, LANGUAGE)`, or ask it with "
            "`medexam run ... --set dataset.name=headqa_v2 --set dataset.path=FOLDER --set dataset.language=LANGUAGE`.",
            "",
        ]
    )

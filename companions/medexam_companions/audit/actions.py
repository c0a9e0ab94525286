"""What `medexam audit` does: sheets for raters, what they say, and a judge that is a model."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import medexam
from medexam.cli import print_json, print_tables, write_file
from medexam.errors import SpecError
from medexam.experiments import (
    AnyRun,
    Terminal,
    cost_tables,
    default_runs_dir,
    find_runs,
    heading,
    join_markdown,
    render_table,
    run_paths,
)
from medexam.specs import parse_overrides
from medexam.tables import NONE, Captioned, Table, coefficient, percent
from medexam_companions.audit.folder import INSTRUCTIONS, KEY, AuditFolder, write_sheets
from medexam_companions.audit.items import AuditItem, best_answers, choose_sample, read_audit_items
from medexam_companions.audit.judging import (
    SHEET,
    SHIPPED,
    KindAgreement,
    choose_wrong,
    compare_judges,
    read_kinds,
    read_people,
    write_judging,
)
from medexam_companions.audit.page_marks import find_page_sheets, read_page_ratings
from medexam_companions.audit.ratings import check_answers, describe_changes, read_ratings
from medexam_companions.audit.result import audit_document, find_audit
from medexam_companions.audit.tables import audit_report, audit_tables


def export_answers(
    runs: Sequence[Path],
    out: Path,
    per_group: int,
    top: int | None,
    by: str | None,
    raters: int,
    seed: int,
    runs_dir: Path | None,
) -> None:
    """Write a sheet for each rater, and say what to do with it."""
    folders = find_runs(run_paths(runs, runs_dir or default_runs_dir()))
    items = read_audit_items(folders)
    if by is not None and top is None:
        raise SpecError("--by chooses the measure of --top: give --top with it, such as --top 1")
    sample = choose_sample(items if top is None else best_answers(items, top, by), per_group, seed)
    sheets = write_sheets(
        AuditFolder(out), sample, raters, seed, {folder.read_record().run_id: folder.path for folder in folders}
    )
    sys.stdout.write(f"{_describe(sample)}.\n")
    sys.stdout.write(
        f"Give each rater one of {', '.join(path.name for path in sheets)} and {INSTRUCTIONS}; keep {KEY} to "
        f"yourself. Put the filled-in sheets back into {out}, then: medexam audit import {shlex.quote(str(out))}\n"
    )


def read_sheets(
    folder: Path, sheet: Sequence[Path], runs_dir: Path | None, markdown: Path | None, *, as_json: bool
) -> None:
    """Read filled-in sheets, and show how far raters and measures agree."""
    place = runs_dir or default_runs_dir()
    if page_sheets := find_page_sheets(folder):
        ratings = read_page_ratings([*page_sheets, *sheet], place)
    else:
        ratings = check_answers(read_ratings(AuditFolder(folder), sheet), place)
    sys.stderr.write("".join(f"medexam: {line}\n" for line in describe_changes(ratings)))
    audit = find_audit(ratings)
    if markdown is not None:
        write_file(audit_report(audit), markdown)
    if as_json:
        print_json(audit_document(audit))
        return
    print_tables(Terminal(), audit_tables(audit))


def _describe(sample: Sequence[AuditItem]) -> str:
    """Say how many answers, of how many runs, to how many questions, and how many of these all runs share."""
    runs = {item.run for item in sample}
    runs_by_question: dict[str, set[str]] = {}
    for item in sample:
        runs_by_question.setdefault(item.key, set()).add(item.run)
    line = f"{len(sample)} answers of {len(runs)} runs to {len(runs_by_question)} questions"
    if len(runs) == 1:
        return line
    shared = sum(run_ids == runs for run_ids in runs_by_question.values())
    return f"{line}; every run is judged on {'all' if shared == len(runs_by_question) else shared} of these questions"


def judge_answers(
    runs: Sequence[Path],
    model: str,
    out: Path,
    per_group: int,
    below: float,
    instructions: Path | None,
    seed: int,
    overrides: Sequence[str],
    runs_dir: Path | None,
    markdown: Path | None,
    *,
    as_json: bool,
) -> None:
    """Ask the judge what is pending, and show its verdicts and those of people."""
    text = (instructions or SHIPPED).read_text("utf-8")
    items = read_audit_items(find_runs(run_paths(runs, runs_dir or default_runs_dir())))
    sample = choose_sample(choose_wrong(items, below), per_group, seed)
    spec = write_judging(out, sample, text, model)
    settings = {name.replace(".", "__"): value for name, value in parse_overrides(overrides).items()}
    with redirect_stdout(sys.stderr):
        judged = medexam.run(spec, runs_dir=out / "runs", track=False, **settings)
    stored = judged[0].stored
    kinds = read_kinds(text)
    verdicts = {key: said.text for key, said in stored.folder.read_predictions().items() if said.text in kinds}
    people = read_people(out, kinds)
    agreements = compare_judges({stored.model or "judge": verdicts, **people}, kinds)
    tables = _tables(stored, kinds, agreements)
    sys.stderr.write(
        f"medexam: the judge's prompt is {out / 'judge.md'}; people fill in copies of {out / SHEET} under names of "
        "their own, then run this again\n"
    )
    if markdown is not None:
        parts = ["# Kinds of errors"]
        for table, caption in tables:
            parts += [heading(2, table.title), render_table(table), caption]
        write_file(join_markdown([*parts, heading(2, "The judge's instructions"), text]), markdown)
    if as_json:
        print_json(
            {
                "run": stored.folder.name,
                "metrics": stored.metrics.model_dump(mode="json"),
                "agreement": [vars(agreement) for agreement in agreements],
                "costs": None if stored.costs is None else stored.costs.to_json(),
                "instructions": text,
            }
        )
        return
    print_tables(Terminal(), tables)


def _tables(run: AnyRun, kinds: Sequence[str], agreements: Sequence[KindAgreement]) -> list[Captioned]:
    """Build the tables of kinds by run, of agreement if people judged, and of what the judge cost."""
    metrics = run.metrics
    groups = [measures for measures in (metrics.measures, *metrics.by_group.values()) if measures]
    rows = tuple(
        (kind, *(percent(measures[kind].value if kind in measures else 0.0) for measures in groups)) for kind in kinds
    )
    judged = next((measure.n for measure in metrics.measures.values()), 0)
    caption = f"Percent of the wrong answers that {run.model} judged: {judged:,} of {metrics.selected:,}."
    names = [run_id for run_id, measures in metrics.by_group.items() if measures]
    tables = [(Table("Kinds of errors", ("Kind", *(["All"] if groups else []), *names), rows), caption)]
    if agreements:
        pairs = tuple(
            (
                " and ".join(each.judges),
                str(each.n),
                percent(each.same),
                NONE if each.kappa is None else coefficient(each.kappa),
            )
            for each in agreements
        )
        caption = "Answers that both judged, percent with the same kind, and Cohen's kappa."
        tables.append((Table("Judges against each other", ("Judges", "Answers", "Same kind", "Kappa"), pairs), caption))
    return [*tables, *cost_tables(run)]

"""`medexam audit judge`: a model of one's choice says what kind of error each wrong answer is."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.toolkit.commands import (
    JsonOption,
    RunsDirOption,
    Terminal,
    default_runs_dir,
    print_json,
    print_tables,
    run_paths,
    write_file,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medexam.companions.audit.judging import KindAgreement
    from medexam.toolkit.runs import AnyRun
    from medexam.toolkit.tables import Captioned


def judge_errors(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders, folders of runs, or ids in the runs directory."),
    ],
    model: Annotated[str, typer.Option(metavar="MODEL", help="The judge, such as openai/gpt-4o-mini or embedded.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the wrong answers and the judge's run.")],
    per_group: Annotated[int, typer.Option(min=1, metavar="N", help="Wrong answers of each run in each group.")] = 10,
    below: Annotated[
        float, typer.Option(metavar="SCORE", help="An answer is wrong if its first measure is below this, 0 to 1.")
    ] = 0.5,
    instructions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The judge's instructions, with a line `- kind: what it is` for each kind."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses the answers.")] = 0,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the judge's spec, such as model.seed=1."),
    ] = None,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
) -> None:
    """Have a model say what kind of error each wrong answer is, and compare it with people who did so.

    The same command again asks only what is pending, and reads the sheets that were filled in meanwhile.
    """
    import medexam
    from medexam.companions.audit.items import choose_sample, read_audit_items
    from medexam.companions.audit.judging import (
        SHEET,
        SHIPPED,
        choose_wrong,
        compare_judges,
        read_kinds,
        read_people,
        write_judging,
    )
    from medexam.toolkit.report import heading, join_markdown, render_table
    from medexam.toolkit.runs import find_runs
    from medexam.toolkit.specs import parse_overrides

    text = (instructions or SHIPPED).read_text("utf-8")
    items = read_audit_items(find_runs(run_paths(runs, runs_dir or default_runs_dir())))
    sample = choose_sample(choose_wrong(items, below), per_group, seed)
    spec = write_judging(out, sample, text, model)
    settings = {name.replace(".", "__"): value for name, value in parse_overrides(overrides or ()).items()}
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


def _tables(run: "AnyRun", kinds: "Sequence[str]", agreements: "Sequence[KindAgreement]") -> "list[Captioned]":
    """Build the tables of kinds by run, of agreement if people judged, and of what the judge cost."""
    from medexam.toolkit.report import cost_tables
    from medexam.toolkit.tables import NONE, Table, coefficient, percent

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

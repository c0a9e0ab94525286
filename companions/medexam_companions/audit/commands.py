"""Have people or a model judge answers, and compare their marks."""

import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import RUNS, JsonOption, RunsDirOption, print_json

app = typer.Typer(help="Have people or a model judge answers, and compare their marks.", no_args_is_help=True)
RunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN", help="Run folders, folders of runs, or ids in the runs directory.")
]


@app.command("judge")
def judge_errors(
    runs: RunsArgument,
    model: Annotated[str, typer.Option(metavar="MODEL", help="The judge, such as openai/gpt-4o-mini or embedded.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the wrong answers and the judge's run.")],
    per_group: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many wrong answers of each run in each group.")
    ] = 10,
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
    runs_dir: RunsDirOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Have a model say what kind of error each wrong answer is, and compare it with people who did so.

    The same command again asks only what is pending, and reads the sheets that were filled in meanwhile.

    For example:
        medexam audit judge 3c2aae --model openai/gpt-4o-mini --out judged
    """
    import medexam
    from medexam.experiments import Terminal, find_runs, print_blocks
    from medexam.specs import parse_overrides
    from medexam.text import print_notice
    from medexam_companions.audit import judging
    from medexam_companions.audit.agreement import agree
    from medexam_companions.audit.items import choose_sample, read_all_items
    from medexam_companions.audit.report import kind_tables

    text = (instructions or judging.SHIPPED).read_text("utf-8")
    items = read_all_items(find_runs(runs, runs_dir))
    sample = choose_sample(judging.choose_wrong(items, below), per_group, seed)
    spec = judging.write_judging(out, sample, text, model)
    settings = {name.replace(".", "__"): value for name, value in parse_overrides(overrides or ()).items()}
    with redirect_stdout(sys.stderr):
        stored = medexam.run(spec, runs_dir=out / "runs", track=False, **settings)[0].stored
    kinds = judging.read_kinds(text)
    verdicts = {key: each.text for key, each in stored.folder.read_predictions().items() if each.text in kinds}
    agreements = agree({stored.model or "judge": verdicts, **judging.read_people(out, kinds)}, kinds)
    print_notice(
        f"the judge's prompt is {out / 'judge.md'}; people fill in copies of {out / judging.SHEET} under names of "
        "their own, then run this again"
    )
    if as_json:
        print_json(
            {
                "run": stored.folder.name,
                "metrics": stored.metrics.model_dump(mode="json"),
                "agreement": agreements,
                "costs": stored.costs,
                "instructions": text,
            }
        )
    else:
        print_blocks(Terminal(), kind_tables(stored, kinds, agreements))


@app.command()
def export(
    runs: RunsArgument,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to make for the sheets and the key.")],
    per_group: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many answers of each run in each group.")
    ] = 10,
    raters: Annotated[int, typer.Option(min=1, metavar="N", help="How many sheets to write.")] = 2,
    seed: Annotated[int, typer.Option(help="The seed that chooses the answers and the order of each sheet.")] = 0,
    runs_dir: RunsDirOption = RUNS,
) -> None:
    """Write a sheet for each rater: a sample of answers, blinded, each sheet in an order of its own.

    For example:
        medexam audit export 3c2aae --out audit --per-group 10 --raters 2
    """
    from medexam.experiments import find_runs
    from medexam_companions.audit.folder import INSTRUCTIONS, KEY, write_sheets
    from medexam_companions.audit.items import choose_sample, read_all_items

    folders = find_runs(runs, runs_dir)
    sample = choose_sample(read_all_items(folders), per_group, seed)
    places = {folder.read_record().run_id: folder.path for folder in folders}
    sheets = write_sheets(out, sample, raters, seed, places)
    typer.echo(
        f"{len(sample)} answers of {len({item.run for item in sample})} runs to {len({item.key for item in sample})} "
        f"questions.\nGive each rater one of {', '.join(sheets)} and {INSTRUCTIONS}; keep {KEY} to yourself. "
        f"Put the filled-in sheets back into {out}, then: medexam audit import {shlex.quote(str(out))}"
    )


@app.command("import")
def import_ratings(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="The folder that `export` made, or the sheet that a page saved.")
    ],
    sheet: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A filled-in sheet; may be repeated. All CSV files of DIR by default."),
    ] = None,
    runs_dir: RunsDirOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Read filled-in sheets: how far raters agree with each other and each automatic measure with them.

    Marks of answers that have changed since they were exported are left out and named.

    For example:
        medexam audit import audit
    """
    from medexam.experiments import Terminal, print_blocks
    from medexam.text import count_of, print_notice
    from medexam_companions.audit.ratings import read_ratings
    from medexam_companions.audit.report import audit_document, audit_tables

    ratings = read_ratings(folder, sheet or (), runs_dir)
    if ratings.changed:
        names = ", ".join(f"{entry.code} ({entry.run}, {entry.key})" for entry in ratings.changed)
        print_notice(
            f"{count_of(len(ratings.changed), 'mark')} left out, because the answer has changed since it was rated, or "
            f"has no reply: {names}; export again to have today's answers judged"
        )
    document = audit_document(ratings, folder)
    if as_json:
        print_json(document)
    else:
        print_blocks(Terminal(), audit_tables(document))

"""`medexam data translate` and `medexam data quality`: an exam in another language, and how good it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli import RUNS, FailuresOption, JsonOption, PathOption, RunsDirOption, TrackingOption, refuse
from medexam.errors import DatasetError, SpecError

if TYPE_CHECKING:
    from medexam.experiments import Plan, Stop


def translate(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A data set, as `medexam data list` names it.")],
    source: Annotated[str, typer.Option("--from", metavar="LANGUAGE", help="The language to translate from.")] = "es",
    target: Annotated[str, typer.Option("--to", metavar="LANGUAGE", help="The language to translate to.")] = "en",
    setups: Annotated[str, typer.Option(metavar="A,B", help="Set-ups to choose among.")] = "zero_shot,one_shot,expert",
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A key of model, base or dataset, such as model.engine=vllm."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Translate at most N questions, spread evenly over the exams.")
    ] = None,
    path: PathOption = None,
    words: Annotated[Path | None, typer.Option(metavar="FILE", help="A YAML file with prompts of your own.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder to write; one of the runs directory by default.")
    ] = None,
    runs_dir: RunsDirOption = RUNS,
    max_failures: FailuresOption = None,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Translate a data set in several ways and keep one valid translation a question; continues where it stopped.

    Exit codes: 0 the data set is written, 2 no translation is valid, 3 replies are still pending.

    For example:
        medexam data translate headqa_v1 --from es --to en --limit 30
    """
    from medexam.cli import INCOMPLETE, describe_stop, print_json, send_to_mlflow
    from medexam.experiments import Terminal, Unbroken, print_blocks
    from medexam.specs import BUILT, parse_overrides
    from medexam.text import print_notice
    from medexam_companions.translation.outcome import find_outcome, track_translation, write_data_set
    from medexam_companions.translation.plan import SELECTION, build_spec, plan_translation
    from medexam_companions.translation.tables import selection_tables

    spec = build_spec(
        parse_overrides(overrides or ()),
        dataset={"name": dataset, "language": source, "path": path, "limit": limit},
        target=target,
        setups=tuple(setup.strip() for setup in setups.split(",") if setup.strip()),
        words=words,
    )
    plan = plan_translation(spec, runs_dir=runs_dir, out=out)
    plan.save()
    stop = _ask(plan.runs, max_failures)
    plan = plan_translation(spec, runs_dir=runs_dir, out=out)
    outcome, folder = find_outcome(plan), plan.folder.path
    plan.folder.write_json(SELECTION, outcome.document)
    output = write_data_set(plan, outcome) if not outcome.pending else None
    if outcome.mixed:
        models = ", ".join(f"{each['name']} {each['answers']:,}" for each in outcome.document["answered_by"])
        print_notice(
            f"warning: more than one model replied ({models}); translate into another folder with --out to have one"
        )
    if as_json:
        print_json({**outcome.document, "folder": str(folder), "path": output and str(output[0])})
    else:
        print_blocks(Terminal(), selection_tables(outcome.document))
        if output is not None:
            check = f"Check it: medexam data check {BUILT.name} --path {folder}"
            print_blocks(Terminal(), [Unbroken(f"{output[1]:,} questions in {output[0]}."), Unbroken(check)])
    send_to_mlflow(track_translation, plan, outcome, tracking_uri=tracking_uri, runs_dir=runs_dir)
    if outcome.pending:
        print_notice(
            f"{describe_stop(stop)}: pending replies: {outcome.pending}, so the data set is not written; the same "
            "command asks them"
        )
        raise typer.Exit(INCOMPLETE)
    if output is None:
        raise DatasetError(
            f"none of the {len(outcome.candidates):,} questions has a valid translation, so no data set is written; "
            f"read the replies in {folder / 'replies'}, then try a stronger model with --set model.name=NAME "
            "or, if replies are cut off, a larger --set model.max_tokens=N, and another --out DIR"
        )


def quality(
    context: typer.Context,
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER", help="Folders that `medexam data translate` made.")
    ],
    back: Annotated[
        bool, typer.Option("--back/--no-back", help="Translate back with the same model, for the round trip.")
    ] = True,
    reference: Annotated[
        bool, typer.Option("--reference", help="Compare with the data set's own translation, if it has one.")
    ] = False,
    bert: Annotated[bool, typer.Option("--bert/--no-bert", help="Compute BERTScore beside BLEU.")] = True,
    bert_model: Annotated[str | None, typer.Option(metavar="MODEL", help="A folder or a hub id.")] = None,
    bert_layer: Annotated[
        int | None, typer.Option(min=1, help="The layer; for known hub ids that of bert-score by default.")
    ] = None,
    runs_dir: RunsDirOption = RUNS,
    max_failures: FailuresOption = None,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure translations by BLEU and BERTScore: translated back, or against the data set's own translation.

    For example:
        medexam data quality runs/translation --reference
    """
    if not back:
        refuse(context, {"max_failures"}, "it is for translating back: leave it out, or --no-back")
        if not reference:
            raise SpecError("--no-back leaves nothing to measure: add --reference")
    if not bert:
        refuse(context, {"bert_model", "bert_layer"}, "it is for BERTScore: leave it out, or --no-bert")
    from medexam.cli import INCOMPLETE, print_json, send_to_mlflow
    from medexam.experiments import Terminal, print_blocks, run_paths
    from medexam.text import print_notice
    from medexam_companions.translation.outcome import find_outcome, track_translation
    from medexam_companions.translation.plan import QUALITY, load_plan
    from medexam_companions.translation.quality import plan_back, score_back, score_reference
    from medexam_companions.translation.scores import BERT_MODEL, BertScore
    from medexam_companions.translation.tables import score_table

    scorer = BertScore(bert_model or BERT_MODEL, bert_layer) if bert else None
    documents, pending = [], 0
    for plan in map(load_plan, run_paths(folders, runs_dir)):
        outcome, rows = find_outcome(plan), []
        if not outcome.choices:
            raise SpecError(
                f"{plan.folder.path} holds no valid translation yet: finish it with `medexam data translate`, or "
                "translate with another model"
            )
        if back:
            returned = plan_back(plan, outcome)
            if returned.runs[0].pending:
                _ask(returned, max_failures)
                returned = plan_back(plan, outcome)
            pending += len(returned.runs[0].pending)
            rows += score_back(plan, returned, scorer)
        if reference:
            rows += score_reference(plan, outcome, scorer)
        signatures = list(dict.fromkeys(line for row in rows for line in row.pop("signatures")))
        languages = {"source": plan.spec.dataset.language, "target": plan.spec.target}
        document = {**languages, "signatures": signatures, "measured": rows}
        plan.folder.write_json(QUALITY, document)
        documents.append(document)
        send_to_mlflow(track_translation, plan, outcome, tracking_uri=tracking_uri, runs_dir=runs_dir)
    if as_json:
        print_json(documents)
    else:
        print_blocks(Terminal(), [score_table(documents)])
    if pending:
        print_notice(f"incomplete: pending replies: {pending}; the same command asks them")
        raise typer.Exit(INCOMPLETE)


def _ask(plan: "Plan", max_failures: int | None) -> "Stop | None":
    """Ask what is pending, as every run is asked; return why it stopped early."""
    from medexam import Limits
    from medexam.experiments import carry_out

    return carry_out(plan, limits=Limits(failures=max_failures))[1]

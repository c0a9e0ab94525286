"""`medexam sequential`: only as many questions as the comparisons need."""

from typing import Annotated

import typer

from medexam.cli import RUNS, JsonOption, RunsDirOption, TrackingOption


def sequential(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A spec with a matrix, whose cells are compared.")],
    *,
    difference: Annotated[float, typer.Option(help="The smallest difference that matters, in points of accuracy.")],
    power: Annotated[float, typer.Option(help="How often a difference of that size is to be found.")] = 0.8,
    runs_dir: RunsDirOption = RUNS,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask only as many questions as the comparisons with a spec's first cell need; the same command continues.

    For example:

    medexam sequential study.yaml --difference 5
    """
    from medexam.cli import INCOMPLETE, describe_stop, print_json, send_to_mlflow
    from medexam.experiments import track_runs
    from medexam.tables import decimal
    from medexam.text import print_notice
    from medexam_companions.analysis.stopping import ask_by_blocks

    records, runs, stop = ask_by_blocks(spec, runs_dir, difference, power)
    if as_json:
        print_json(records)
    else:
        for run, record in records.items():
            low, high = (decimal(100 * bound) for bound in record["interval"])
            typer.echo(
                f"{run}: {record['ended'] or 'undecided'} after {record['asked']:,} of {record['questions']:,} "
                f"questions, against {record['baseline']}; confidence sequence [{low}, {high}] points"
            )
    if runs:
        send_to_mlflow(track_runs, runs, tracking_uri=tracking_uri, runs_dir=runs_dir)
    if any(record["asked"] < record["questions"] for record in records.values()):
        print_notice("p-values of `compare` assume a fixed number of questions: rely on what stands here")
    if not all(record["ended"] for record in records.values()):
        print_notice(f"{describe_stop(stop)}: comparisons have not ended; the same command continues them")
        raise typer.Exit(INCOMPLETE)

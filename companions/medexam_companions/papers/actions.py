"""What `medexam reproduce` and `medexam report --layout` do: make, show and write what a paper prints."""

import sys

import typer

from medexam import Limits
from medexam.cli import INCOMPLETE, TerminalProgress, print_json, print_notice, send_to_mlflow, write_file
from medexam.errors import SpecError
from medexam.experiments import Carriers, write_pictures
from medexam.experiments.track.runs import track
from medexam.specs import parse_overrides
from medexam_companions.papers.catalogue import find_paper_entry
from medexam_companions.papers.making import Reproduced, plan
from medexam_companions.papers.settings import ReproduceSettings
from medexam_companions.papers.views import print_paper_plan, print_reproduced


def make_entry(name: str, settings: ReproduceSettings, *, show_plan: bool, as_json: bool) -> None:
    """Make a table or figure again, or say what that needs."""
    overrides = parse_overrides(settings.overrides)
    planned = plan(
        find_paper_entry(name),
        overrides,
        settings.limit,
        settings.only,
        runs_dir=settings.runs_dir,
        only_look=show_plan,
    )
    if show_plan:
        print_paper_plan(planned, as_json=as_json)
        return
    for part in planned.parts:
        if part.missing:
            print_notice(f"left out {part.spec}: {part.missing}")
    product = planned.make(Carriers(limits=Limits(failures=settings.max_failures)), TerminalProgress, print_notice)
    _write(product, settings)
    if as_json:
        print_json(product.document)
    else:
        print_reproduced(product)
    if product.runs:
        send_to_mlflow(track, product.runs, tracking_uri=settings.tracking_uri, runs_dir=planned.runs_dir)
    if not product.complete:
        sys.stderr.write(f"medexam: {name} is incomplete; the same command asks what is pending\n")
        raise typer.Exit(INCOMPLETE)


def _write(product: Reproduced, settings: ReproduceSettings) -> None:
    """Write what goes to files."""
    if settings.markdown is not None:
        write_file(product.markdown(), settings.markdown)
    if settings.out is not None:
        if not product.pictures:
            raise SpecError(f"--out: {product.entry.name} is a table and has no figure; leave it out")
        for path in write_pictures(product.pictures, settings.out, "--out"):
            print_notice(f"wrote {path}")
    elif product.pictures:
        print_notice("--out DIR writes the figure as PNG")

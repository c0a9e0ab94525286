"""`medexam optimize`: better demonstrations and instructions for a program, chosen on exams that are not tested."""

from dataclasses import dataclass
from typing import Annotated

from medexam.cli.options import JsonOption, RunsDirOption, TrackingOption, check_resumed, settings_as_flags
from medexam.cli.run import OptionalSpec, OverridesOption
from medexam.errors import SpecError
from medexam.settings import Setting


@dataclass(frozen=True)
class OptimizeSettings:
    """What is optimized, beside the spec, and where it lies."""

    overrides: OverridesOption = ()
    runs_dir: RunsDirOption = None
    plan: Annotated[bool, Setting("Say what would be tried and what it may cost, and stop.")] = False
    resume: Annotated[
        str | None,
        Setting("Instead of a SPEC: go on with this one; --set may raise its budget.", metavar="FOLDER"),
    ] = None
    fresh: Annotated[bool, Setting("Start another one beside that which exists.")] = False
    tracking_uri: TrackingOption = None


@settings_as_flags
def optimize(settings: OptimizeSettings, spec: OptionalSpec = None, as_json: JsonOption = False) -> None:
    """Optimize a program's demonstrations and instructions, or continue where that stopped."""
    if settings.plan and settings.tracking_uri is not None:
        raise SpecError("--plan sends nothing to MLflow: leave out --tracking-uri, or --plan")
    if settings.resume is not None and (spec is not None or settings.fresh):
        raise SpecError("--resume FOLDER goes on with that optimization: leave out SPEC and --fresh")
    if settings.resume is not None:
        check_resumed(settings.resume, settings.runs_dir)
    elif spec is None:
        raise SpecError("nothing to optimize: give a SPEC, or an optimization to go on with by --resume FOLDER")
    from medexam.specs import load_document, parse_overrides

    overrides = parse_overrides(settings.overrides)
    document = load_document(spec) if spec is not None else {}
    from medexam.cli.actions.optimize import optimize_program

    optimize_program(settings, spec, document, overrides, as_json=as_json)

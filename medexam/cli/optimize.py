"""`medexam optimize`: better demonstrations and instructions for a program, chosen on exams that are not tested."""

from medexam.cli.flags.optimize import OptimizeSettings
from medexam.cli.flags.run import OptionalSpec
from medexam.cli.options import JsonOption, check_resumed, settings_as_flags
from medexam.errors import SpecError
from medexam.specs import load_document, parse_overrides


@settings_as_flags
def optimize(settings: OptimizeSettings, spec: OptionalSpec = None, as_json: JsonOption = False) -> None:
    """Optimize a program's demonstrations and instructions, or continue an interrupted optimization."""
    if settings.plan and settings.tracking_uri is not None:
        raise SpecError("--plan sends nothing to MLflow: leave out --tracking-uri, or --plan")
    if settings.resume is not None and (spec is not None or settings.fresh):
        raise SpecError("--resume FOLDER continues that optimization: leave out SPEC and --fresh")
    if settings.resume is not None:
        check_resumed(settings.resume, settings.runs_dir)
    elif spec is None:
        raise SpecError("nothing to optimize: give a SPEC, or an optimization to continue by --resume FOLDER")
    overrides = parse_overrides(settings.overrides)
    document = load_document(spec) if spec is not None else {}
    from medexam.cli.actions.optimize import optimize_program

    optimize_program(settings, spec, document, overrides, as_json=as_json)

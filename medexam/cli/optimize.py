"""`medexam optimize`: better demonstrations and instructions for a program, chosen on exams that are not tested."""

from medexam.cli.flags.optimize import OptimizeSettings
from medexam.cli.flags.run import SpecArgument
from medexam.cli.options import JsonOption, settings_as_flags
from medexam.errors import SpecError
from medexam.specs import load_document, parse_overrides


@settings_as_flags
def optimize(settings: OptimizeSettings, spec: SpecArgument, as_json: JsonOption = False) -> None:
    """Optimize a program's demonstrations and instructions, or continue an interrupted optimization."""
    if settings.plan and settings.tracking_uri is not None:
        raise SpecError("--plan sends nothing to MLflow: leave out --tracking-uri, or --plan")
    overrides, document = parse_overrides(settings.overrides), load_document(spec)
    from medexam.cli.actions.optimize import optimize_program

    optimize_program(settings, spec, document, overrides, as_json=as_json)

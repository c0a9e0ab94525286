"""What `medexam run` and `medexam plan` read before they load what plans: specs, and the flags that change them."""

from collections.abc import Sequence
from functools import partial

from medexam.cli.flags.run import PlanSettings
from medexam.cli.views.meaning import add_axes
from medexam.cli.views.runs import print_notice
from medexam.errors import SpecError
from medexam.experiments.entry.named_parts import ask_addresses, read_spec
from medexam.specs import parse_overrides
from medexam.specs.suite import SuiteEntry, load_entries


def read_entries(specs: Sequence[str], settings: PlanSettings, *, only_look: bool = False) -> list[SuiteEntry]:
    """Read specs and suites, each with what flags change; raises `SpecError` for what cannot be asked."""
    flags, changes = settings.flags, parse_overrides(settings.changes)
    entries = []
    for entry in load_entries(specs, partial(read_spec, tell=print_notice)):
        overrides = {**entry.overrides, **flags.overrides(entry.document), **changes}
        document = add_axes(entry.document, flags.axes())
        entries.append(SuiteEntry(*ask_addresses(document, overrides, only_look=only_look)))
    if settings.save is not None and len(entries) > 1:
        raise SpecError("--save writes one spec: give one SPEC, not a suite, or leave --save out")
    return entries

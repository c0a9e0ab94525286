"""The flags of `medexam run` and `medexam plan`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from medexam.cli.help.completion import complete_spec
from medexam.cli.options import (
    FailuresOption,
    OverridesOption,
    RayAddressOption,
    RunsDirOption,
    TrackingOption,
)
from medexam.cli.settings import Setting
from medexam.cli.views.meaning import ShortFlags
from medexam.errors import SpecError

SPEC_HELP = "A YAML file, the name of a shipped experiment, suite or data set, or a table of your own questions."


SPEC_PANEL = "What is asked (repeat a flag, or put commas between values: a run for each)"


SpecArgument = Annotated[
    str, typer.Argument(help=SPEC_HELP, metavar="SPEC", show_default=False, autocompletion=complete_spec)
]


OptionalSpecs = Annotated[
    list[str] | None,
    typer.Argument(help=SPEC_HELP, metavar="SPEC...", show_default=False, autocompletion=complete_spec),
]


def _number_of_workers(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if text.isdecimal() and int(text):
        return int(text)
    raise SpecError(f"--workers {text}: give auto, or a number of at least 1")


@dataclass(frozen=True)
class PlanSettings:
    """What is planned, beside the spec."""

    overrides: OverridesOption = ()
    model: Annotated[
        tuple[str, ...],
        Setting(
            "The model: PROVIDER/MODEL, an address, ./FOLDER, hf:ORGANISATION/NAME, a profile or an engine.",
            metavar="MODEL",
            panel=SPEC_PANEL,
        ),
    ] = ()
    program: Annotated[
        tuple[str, ...], Setting("The program, such as few_shot or zero_shot-guided.", metavar="KIND", panel=SPEC_PANEL)
    ] = ()
    language: Annotated[
        tuple[str, ...], Setting("The language of the questions, such as es.", metavar="LANGUAGE", panel=SPEC_PANEL)
    ] = ()
    years: Annotated[
        tuple[str, ...],
        Setting("The years of the exams: 2016, 2013,2016 or 2013-2016.", metavar="YEARS", panel=SPEC_PANEL),
    ] = ()
    temperature: Annotated[
        tuple[str, ...],
        Setting("The temperature of the sampling; 0 takes the likeliest token.", metavar="T", panel=SPEC_PANEL),
    ] = ()
    samples: Annotated[
        tuple[str, ...],
        Setting("Ask each question N times and take the commonest answer.", metavar="N", panel=SPEC_PANEL),
    ] = ()
    save: Annotated[
        Path | None, Setting("Write the spec that these flags mean to this file.", metavar="FILE", panel=SPEC_PANEL)
    ] = None
    price: Annotated[
        str | None,
        Setting(
            "US dollars for a million tokens of prompts and for a million of replies, such as 0.15,0.60.",
            metavar="IN,OUT",
        ),
    ] = None
    max_cost: Annotated[
        float | None, Setting("Spend at most this many US dollars, those in flight included.", metavar="USD", min=0)
    ] = None
    limit: Annotated[int | None, Setting("Ask at most N questions, spread evenly over the exams.", min=1)] = None
    runs_dir: RunsDirOption = None

    @property
    def changes(self) -> tuple[str, ...]:
        """The keys that are overridden, as KEY=VALUE."""
        price = (f"model.price=[{self.price}]",) if self.price else ()
        return (*price, *self.overrides)

    @property
    def flags(self) -> ShortFlags:
        """What is set by flags of their own."""
        return ShortFlags(self.model, self.program, self.language, self.years, self.temperature, self.samples)

    @property
    def asks_otherwise(self) -> bool:
        """Whether anything changes what a spec asks."""
        return bool(self.changes) or not self.flags.is_empty or self.limit is not None or self.save is not None


@dataclass(frozen=True)
class RunSettings(PlanSettings):
    """How it is carried out, and by whom."""

    resume: Annotated[
        str | None, Setting("Instead of a SPEC: ask the pending questions of this run.", metavar="RUN")
    ] = None
    fresh: Annotated[bool, Setting("Start new runs beside those that exist.")] = False
    debug: Annotated[
        bool, Setting("Ask one pending question of each cell, print every call with its reply, and keep nothing.")
    ] = False
    repeat: Annotated[
        int, Setting("Ask every question N times more, in other orders, to see how far answers vary.", min=0)
    ] = 0
    accept_model_change: Annotated[
        bool, Setting("Continue although the model has changed; every table then says so.")
    ] = False
    accept_refusals: Annotated[
        bool, Setting("Count a question as unanswered if a server refused it in three runs in a row.")
    ] = False
    without_items: Annotated[
        bool, Setting("Keep no question in the run's folder, where a licence forbids it; reports then need the data.")
    ] = False
    max_failures: FailuresOption = None
    max_tokens: Annotated[
        int | None, Setting("Spend at most N tokens, those in flight included.", metavar="N", min=1)
    ] = None
    max_minutes: Annotated[float | None, Setting("Stop after that time.", metavar="MINUTES", min=0)] = None
    in_flight: Annotated[int | None, Setting("Ask at most N questions at once.", metavar="N", min=1)] = None
    tracking_uri: TrackingOption = None
    executor: Annotated[
        Literal["local", "ray"], Setting("local: this machine asks. ray: the machines of a cluster do.")
    ] = "local"
    workers: Annotated[
        int | Literal["auto"] | None,
        Setting(
            "local: N processes, or auto; 1 by default. ray: N shards; one on each machine by default.",
            metavar="N|auto",
            parse=_number_of_workers,
        ),
    ] = None
    ray_address: RayAddressOption = None

    def __post_init__(self) -> None:
        """Refuse what only a cluster takes."""
        if self.executor != "ray" and self.ray_address is not None:
            raise typer.BadParameter("needs --executor ray", param_hint="--ray-address")

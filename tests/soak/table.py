"""What came out of a soak: its trials counted, as tables of Markdown and as one document."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from soak.phases import PHASES
from soak.records import CODES, SIGNALS, STAGED, WAYS, Step, Trial

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
OPENING, CLOSING = "<!-- written by make soak -->\n", "<!-- end -->\n"
COUNTS: Mapping[str, Callable[[Iterable[Step]], int]] = {
    "kills": lambda steps: sum(step.kills for step in steps),
    "lost": lambda steps: sum(step.lost for step in steps),
    "asked twice": lambda steps: sum(step.twice for step in steps),
    "tracebacks": lambda steps: sum(step.tracebacks for step in steps),
    "wedges": lambda steps: sum(step.wedges for step in steps),
}
"""What is counted over commands."""


def summarize(trials: Sequence[Trial], seed: str, minutes: float) -> dict[str, Any]:
    """Everything that is reported: counts by command, by how it was disturbed, and the trials that failed."""
    steps = [step for trial in trials for step in trial.steps]
    by_work = {work: [trial for trial in trials if trial.work == work] for work in sorted({one.work for one in trials})}
    return {
        "seed": seed,
        "minutes": round(minutes, 1),
        "machine": describe_machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "commands": {work: _count_trials(some) for work, some in by_work.items()} | {"all": _count_trials(trials)},
        "disturbances": {
            way: {"times": len(some), **{name: count(some) for name, count in COUNTS.items()}}
            for way in [*WAYS, *STAGED, "end"]
            if (some := [step for step in steps if step.way == way])
        },
        "phases": {
            phase: {way: sum(step.way == way for step in some) for way in SIGNALS}
            | {name: count(some) for name, count in COUNTS.items() if name != "kills"}
            for phase in PHASES
            if (some := [step for step in steps if step.phase == phase])
        },
        "codes": _count_codes(steps),
        "own_processes": sum(not step.forked for step in steps),
        "left": sorted({name for trial in trials for name in trial.left}),
        "failed": [asdict(trial) for trial in trials if trial.failed],
    }


def _count_codes(steps: Iterable[Step]) -> dict[str, dict[str, int]]:
    """How often each command of trials with several ended with which exit code."""
    ended = [
        (words.split()[0], status)
        for step in steps
        if step.words
        for words, status in zip(step.words, step.statuses, strict=True)
    ]
    return {name: {f"exit {code}": ended.count((name, code)) for code in CODES} for name in sorted({*dict(ended)})}


def _count_trials(trials: Sequence[Trial]) -> dict[str, int]:
    steps = [step for trial in trials for step in trial.steps]
    kills, *others = ((name, count(steps)) for name, count in COUNTS.items())
    differing = sum(trial.differs or bool(trial.wrong) for trial in trials)
    return dict([kills, ("ends", len(trials)), *others, ("other results", differing)])


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The counts as lists of Markdown, and what they were made of; of faults only those that happened, but for all.

    The document has more: when `run` was hit, and the exit codes of trials of several commands.
    """
    yield (
        f"{found['date']}, {found['machine']}, {found['minutes']:g} minutes, `SEED={found['seed']}`, "
        f"{found['own_processes']:,} commands in processes of their own:"
    )
    yield ""
    yield from _draw({name: one for name, one in found["commands"].items() if name != "all"})
    yield f"- all: {', '.join(f'{count:,} {name}' for name, count in found['commands']['all'].items())}"
    if found["disturbances"]:
        yield from ("", "Disturbed by:", "")
        yield from _draw(found["disturbances"])


def _draw(rows: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """An entry for each row; a count of 0 is left out."""
    for label, counts in rows.items():
        yield f"- {label}: {', '.join(f'{count:,} {name}' for name, count in counts.items() if count) or 'none'}"


def write_page(found: Mapping[str, Any]) -> None:
    """Put the tables between the page's marks."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(OPENING)
    _, after = rest.split(CLOSING)
    table = "\n".join(lines(found))
    PAGE.write_text(f"{before}{OPENING}\n{table}\n\n{CLOSING}{after}", encoding="utf-8")


def describe_machine() -> str:
    """The number of processors, and what they are."""
    info = Path("/proc/cpuinfo")
    found = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in found if line.startswith("model name")]
    return f"{len(names)} cores of {names[0]}" if names else platform.processor()

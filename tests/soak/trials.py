"""A trial: a command is disturbed at random moments, then carried out to its end, and what came out is judged."""

import random
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from soak.baselines import Baseline
from soak.children import Child, in_fork, start
from soak.disks import PAGE, can_mount, limit_files, small_disk
from soak.phases import PHASES, phase_of
from soak.records import SIGNALS, WAYS, Step, Trial
from soak.results import files_in
from soak.server import ServerProcess, stamps_in
from soak.stage import LIMIT_S, Stage, is_fault
from soak.works import Work

ALONE_SHARE = 0.05
"""Of commands that are processes of their own; the others are forks."""
FRESH_SHARE = 0.25
"""Of trials that begin without a store of MLflow, and make one."""
MOST = 5
"""Disturbances before a command is left alone."""
LEAST_BYTES = 16_000
"""Smallest limit to files: what a command says goes to files too, and must fit."""
RUN = "run"
"""The work whose phases are told apart."""
AIMED_SHARE = 0.5
"""Of signals to `run` that wait for a phase; most phases are too short for a moment drawn by chance."""
AIMED_S = 0.05
"""Longest time from the beginning of such a phase to the signal; half the signals come at once."""
_LOOK_S = 0.002
OUTAGE_S = 4.0
"""Longest time that a killed server is away."""


@dataclass
class Soaker:
    """Makes trials, one after the other, with a server of its own."""

    works: Mapping[str, Work]
    baselines: Mapping[str, Baseline]
    server: ServerProcess
    inputs: Path
    scratch: Path
    start: Callable[..., Child] = start
    seconds: dict[str, float] = field(init=False)
    """How long each command takes in a fork, as last seen."""

    def __post_init__(self) -> None:
        self.seconds = {name: baseline.seconds for name, baseline in self.baselines.items()}

    def try_once(self, name: str, seed: str) -> Trial:
        """Make a trial of a work, and keep its folder if anything goes wrong."""
        chance, trial, work = random.Random(seed), Trial(name, seed), self.works[name]
        folder = self.scratch / "trial"
        work.begin(folder, self.inputs, with_store=chance.random() > FRESH_SHARE)
        if work.play is None:
            self._disturb_often(work, folder, trial, chance)
        else:
            work.play(self.stage(work, folder, trial, chance))
        if trial.failed:
            folder.rename(self.scratch / f"failed-{seed}")
        shutil.rmtree(folder, ignore_errors=True)
        return trial

    def stage(self, work: Work, folder: Path, trial: Trial, chance: random.Random) -> Stage:
        """Where a trial of several commands takes place."""
        alone = self.baselines[work.name].result
        return Stage(trial, chance, folder, self.scratch, self.inputs, self.server, work.words, alone, self.start)

    def _disturb_often(self, work: Work, folder: Path, trial: Trial, chance: random.Random) -> None:
        """Disturb a command a few times, and judge what comes out in the end."""
        ways = {way: often for way, often in WAYS.items() if work.replies or way != "server killed"}
        for _ in range(chance.randint(1, MOST)):
            (way,) = chance.choices([*ways], [*ways.values()])
            trial.steps.append(self._disturb(work, folder, way, chance))
            if len(trial.steps) == 1 and way in SIGNALS and trial.steps[0].statuses == [0] and trial.steps[0].forked:
                # It was not hit: the machine is faster now than it was.
                self.seconds[work.name] = trial.steps[0].seconds
            if 0 in trial.steps[-1].statuses or _is_over(work, folder):
                break  # it is carried out, and nothing is left to disturb
        trial.steps.append(self.step(work, folder, Step("end", chance.random() > ALONE_SHARE), self._let_end))
        self.judge(trial, folder)

    def judge(self, trial: Trial, folder: Path) -> None:
        """Compare what came out with what comes out undisturbed."""
        work, baseline, end = self.works[trial.work], self.baselines[trial.work], trial.steps[-1]
        if end.statuses != [0] and not (_is_over(work, folder) and end.statuses == [2]):
            end.wedges = 1
            return
        try:
            trial.differs = in_fork(lambda: work.result(folder)) != baseline.result
        except RuntimeError:  # a file of the result is not there, or cannot be read: standard error says which
            trial.differs = True
        left = {*files_in(folder)} - {*baseline.files}
        trial.left = sorted(name for name in left if "mlartifacts" not in name)  # there, names are drawn by chance

    def _disturb(self, work: Work, folder: Path, way: str, chance: random.Random) -> Step:
        """Carry the command out and disturb it in one way."""
        step, baseline = Step(way, chance.random() > ALONE_SHARE), self.baselines[work.name]
        moment = chance.uniform(0, self.seconds[work.name] if step.forked else baseline.cold_s)
        if way in SIGNALS and work.name == RUN:
            aim = chance.choice(PHASES) if chance.random() < AIMED_SHARE else None
            moment = max(0.0, chance.uniform(-AIMED_S, AIMED_S)) if aim else moment
            hit = partial(self._kill_run, step, moment=moment, number=SIGNALS[way], folder=folder, aim=aim)
            return self.step(work, folder, step, hit)
        if way in SIGNALS:
            return self.step(work, folder, step, lambda children: self._kill(step, children, moment, SIGNALS[way]))
        if way == "server killed":
            away = chance.uniform(0, OUTAGE_S)
            return self.step(work, folder, step, lambda children: self._kill_server(step, children, moment, away))
        if way == "two at once":
            second = chance.choice([None, *SIGNALS.values()])
            later = chance.uniform(0, 0.5) if chance.random() < 0.5 else 0.0
            return self.step(
                work, folder, step, lambda children: self._kill(step, children, moment, second), delay_s=later
            )
        missing = sum(baseline.files.values()) - sum(files_in(folder).values())
        if can_mount() and chance.random() < 0.5:
            with small_disk(folder, round(chance.uniform(0, max(missing, 8 * PAGE)))):
                return self.step(work, folder, step, self._let_end)
        size = round(LEAST_BYTES * max(1, max(baseline.files.values()) / LEAST_BYTES) ** chance.random())
        return self.step(work, folder, step, self._let_end, before=lambda: limit_files(size))

    def step(
        self,
        work: Work,
        folder: Path,
        step: Step,
        meanwhile: Callable[[list[Child]], object],
        *,
        delay_s: float | None = None,
        before: Callable[[], object] = bool,
    ) -> Step:
        """Carry the command out, twice at once with a delay, do something meanwhile, and look what is on the disk."""
        kept, stamps = {*work.kept(folder)}, stamps_in(work.reply_files(folder))
        asked, begun = self.server.size(), time.monotonic()
        children: list[Child] = []
        try:
            for delay in [0.0] if delay_s is None else [0.0, delay_s]:
                time.sleep(delay)
                streams = self.scratch / f"streams-{len(children)}"
                children.append(self.start(work.words, folder, streams, forked=step.forked, before=before))
            meanwhile(children)
            deadline = time.monotonic() + self.baselines[work.name].cold_s * 2 + LIMIT_S
            for child in children:
                step.wedges += not child.wait(deadline - time.monotonic())
        finally:
            for child in children:
                child.end()
        step.seconds = round(time.monotonic() - begun, 2)
        step.statuses = [child.status or 0 for child in children]
        step.twice = sum(stamp in stamps for stamp in self.server.asked(asked))
        step.lost = len(kept.difference(work.kept(folder)))
        step.tracebacks = sum(map(is_fault, children))
        if step.faults or step.way == "end":
            step.said = "\n".join(child.said[-3000:] for child in children)
        return step

    def _let_end(self, children: list[Child]) -> None:
        """Disturb nothing."""

    def _kill(self, step: Step, children: list[Child], moment: float, number: int | None) -> None:
        """Send the last of them a signal, if it still runs then; None sends none."""
        if number is not None and not children[-1].wait(moment):
            children[-1].signal(number)
            step.kills += 1

    def _kill_run(
        self, step: Step, children: list[Child], *, moment: float, number: int, folder: Path, aim: str | None
    ) -> None:
        """Send the run a signal a moment after the phase `aim`, or the run without one, began; note what it hits."""
        child, begun = children[-1], time.time()

        def phase() -> str:
            return phase_of(child.said, folder, self.scratch, begun)

        while aim is not None and not (child.begun and phase() == aim):
            if child.wait(_LOOK_S):
                return
        if not child.wait(moment):
            step.phase = phase()
            child.signal(number)
            step.kills += 1

    def _kill_server(self, step: Step, children: list[Child], moment: float, away: float) -> None:
        """Have the server gone for a while, from a moment at which the command still runs."""
        if children[0].wait(moment):
            return
        self.server.kill()
        step.kills += 1
        time.sleep(away)
        self.server.start()


def _is_over(work: Work, folder: Path) -> bool:
    """Whether the command is done and would refuse to be carried out again."""
    return work.over is not None and (folder / work.over).exists()

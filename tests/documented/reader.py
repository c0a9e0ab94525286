"""A reader of one page, who types its commands from top to bottom in a folder of their own.

Commands run in this process, since a new one takes seconds to import what they need. `medexam serve` runs in its own
until the page is read.
"""

import contextlib
import csv
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fake_vllm import free_port

from documented.printed import Command
from documented.servers import MODELS
from documented.tables import MORE, ONCE
from medexam.cli import run_command
from medexam.files import host_name
from medexam.serve import RegisteredServer, Registry
from waiting import BACKSTOP_S

_HELD = re.compile(r"\[…\]")


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


@dataclass
class Reader:
    """One reader."""

    folder: Path
    """The working directory."""
    words: Mapping[str, str]
    """What is typed for words, or parts of words, of the page."""
    addresses: Mapping[str, str]
    """Addresses of the servers in this process, by name."""
    cpu_site: str
    """What PYTHONPATH names where a model runs on the processor."""
    tracks: bool
    """Whether runs are sent to MLflow."""
    outcomes: dict[Path, Ended] = field(default_factory=dict)
    """A copy of what a command of `ONCE` wrote -> how it ended, of all readers."""
    servers: list["subprocess.Popen[str]"] = field(default_factory=list)
    """Those of `medexam serve` that run."""

    def read(self, command: Command) -> Ended:
        """Run a printed command with the words of `MORE` behind it."""
        if command.words in ONCE:
            return self._repeat(command)
        longest = max((one for one in MORE if " ".join(command.words).startswith(one)), key=len, default="")
        return self.type(command, MORE.get(longest, "").format(**self.addresses, PORT=free_port()))

    def _repeat(self, command: Command) -> Ended:
        """Run a command of `ONCE`, or copy what it wrote for another reader."""
        written = self.folder / ONCE[command.words]
        # All readers have this cache.
        kept = (self.folder / "cache").resolve() / written.name
        if kept not in self.outcomes:
            self.outcomes[kept] = self.type(command)
            shutil.copytree(written, kept)
        else:
            shutil.copytree(kept, written)
        return self.outcomes[kept]

    def type(self, command: Command, more: str = "") -> Ended:
        """Run a command with `more` words behind it."""
        words = [*self._typed(command.words), *shlex.split(more)]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in command.variables:
                patch.setenv(name, self._replaced(value))
            # Its vllm is the build for processors.
            if any("smollm2" in word for word in words):
                patch.setenv("PYTHONPATH", self.cpu_site)
            if words[0] == "serve" and not {"--print", "--slurm"} & {*words}:
                return self._serve(words)
            if not self.tracks:
                patch.setattr("medexam.experiments.track.store.send_to_store", lambda *_, **__: None)
            patch.setattr(sys, "argv", ["medexam", *words])
            ended = _run_main()
            if words[0] == "serve" and "--slurm" in words and ended.code == 0 and "--print" not in words:
                self._let_job_run(Path(words[words.index("--registry") + 1]))
        if words[:2] == ["audit", "export"]:
            for sheet in (self.folder / words[words.index("--out") + 1]).glob("rater_*.csv"):
                _fill_in(sheet, "correctness", "completeness")
        if words[:2] == ["data", "quality"] and "--sheet" in words:
            sheet = self.folder / words[words.index("--sheet") + 1]
            _fill_in(sheet, "adequacy", "fluency")
            shutil.copy(sheet, self.folder / "luis.csv")
        if command.output:
            (self.folder / command.output).write_text(ended.out, encoding="utf-8")
        return ended

    def _let_job_run(self, registry: Path) -> None:
        """Write the server of a job that was submitted into its registry, as the job would."""
        entry = RegisteredServer(self.addresses["JOB"], MODELS["JOB"][0], host_name(), os.getpid())
        Registry(registry).add(entry)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        """Ctrl-C for all servers."""
        for server in self.servers:
            server.send_signal(signal.SIGINT)
        for server in self.servers:
            server.communicate(timeout=BACKSTOP_S)
        assert {server.returncode for server in self.servers} <= {0}

    def _serve(self, words: list[str]) -> Ended:
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        line = [sys.executable, "-c", f"{heard}; from medexam.cli import run_command; run_command()", *words]
        log = self.folder / f"serve-{len(self.servers)}.err"
        with log.open("w") as errors:
            server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert server.stdout is not None
        first = server.stdout.readline()
        if first:
            self.servers.append(server)
            return Ended(0, first, "")
        server.communicate(timeout=BACKSTOP_S)
        return Ended(server.returncode, "", log.read_text())

    def _typed(self, words: tuple[str, ...]) -> Iterator[str]:
        several = {name: iter(typed.split(" | ")) for name, typed in self.words.items() if " | " in typed}
        for word in words:
            if word in several:
                yield from self._found(next(several[word]))
            elif word in self.words:
                for one in shlex.split(self.words[word]):
                    yield from self._found(one)
            elif word != "[…]":
                yield from self._found(self._replaced(word))

    def _replaced(self, word: str) -> str:
        for printed, typed in self.words.items():
            word = re.sub(rf"(?<![\w-]){re.escape(printed)}(?![\w-])", lambda _, typed=typed: typed, word)
        return word

    def _found(self, word: str) -> list[str]:
        """The files that a pattern of the shell names, or that a `[…]` stands for; the word itself if none."""
        key, sign, value = word.rpartition("=") if _HELD.search(word) else ("", "", word)
        pattern = _HELD.sub("*", value)
        for folder in ("", "runs/"):
            if "*" in pattern and (paths := sorted(self.folder.glob(folder + pattern))):
                return [f"{key}{sign}{path.relative_to(self.folder)}" for path in paths]
        return [word]


def _run_main() -> Ended:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run_command()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Ended(code, out.getvalue(), err.getvalue())


def _fill_in(sheet: Path, *aspects: str) -> None:
    """Give each row a mark for each aspect, as people would."""
    with sheet.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    with sheet.open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0].keys())
        writer.writeheader()
        writer.writerows(row | dict.fromkeys(aspects, 1 + place % 5) for place, row in enumerate(rows))

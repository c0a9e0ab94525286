"""The page of `medexam report --html` as a server on this machine gives it, made anew while questions are asked.

It writes nothing into a run folder that another process is writing, and answers no address but this machine's.
"""

import html
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from time import monotonic
from urllib.parse import urlsplit

from medexam.errors import MedExamError, SpecError
from medexam.experiments.report.current import current_run
from medexam.experiments.report.page.document import render_page
from medexam.experiments.report.tables import split_families
from medexam.experiments.store.run_folder import PREDICTIONS, SPEC, RunFolder, find_runs, run_paths

HOST = "127.0.0.1"
EVERY_S = 5.0
"""Seconds between two looks; a page that takes long to make is made again after `REST` times as long."""
REST = 5
"""How many times as long as it takes to make the page it stays as it is."""


@dataclass
class LivePage:
    """The page of the runs that `runs` name, made again once their files have changed."""

    runs: Sequence[Path]
    """Run folders, folders of runs, or ids in `runs_dir`."""
    runs_dir: Path
    _lock: Lock = field(default_factory=Lock)
    _body: bytes = b""
    _next_s: float | None = EVERY_S
    _state: object = None
    _due: float = 0.0

    def current(self) -> tuple[bytes, float | None]:
        """Return the page as bytes, and in how many seconds to load it again; None if no question is pending."""
        with self._lock:
            start = monotonic()
            if start >= self._due:
                try:
                    self._renew()
                except MedExamError as error:
                    notice = f"<!doctype html><title>medexam</title><p>{html.escape(str(error))}</p>"
                    self._body, self._next_s, self._state = notice.encode(), EVERY_S, None
                self._due = monotonic() + max(EVERY_S, REST * (monotonic() - start))
            return self._body, self._next_s

    def _renew(self) -> None:
        folders = find_runs(run_paths(self.runs, self.runs_dir))
        state = [_stamp(folder) for folder in folders]
        if state == self._state:
            return
        runs = [current_run(folder, lambda _line: None) for folder in folders]
        # A page shows the runs of one benchmark: those that began last.
        page_runs = next(family for family in split_families(runs) if runs[-1] in family)
        self._body = "".join(render_page(page_runs)).encode("utf-8", "replace")
        self._next_s = None if all(run.complete for run in runs) else EVERY_S
        self._state = state


def serve_runs(runs: Sequence[Path], runs_dir: Path, port: int) -> None:
    """Answer requests for the page of these runs, or of all in `runs_dir`, at `HOST` until Ctrl-C."""
    if runs:
        find_runs(run_paths(runs, runs_dir))
    page = LivePage(tuple(runs or [runs_dir]), runs_dir)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A page elsewhere that guesses the port must not read exams by a name that leads here.
            is_ours = self.headers.get("Host", "").rpartition(":")[0] in {HOST, "localhost"}
            if not is_ours or urlsplit(self.path).path != "/":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body, next_s = page.current()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            if next_s is not None:
                self.send_header("Refresh", f"{next_s:g}")
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Write nothing: a line for each request would stand between those of the run."""

    try:
        server = ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise SpecError(f"cannot listen on {HOST}:{port} ({error.strerror}); choose another port") from None
    sys.stderr.write(f"The page is at http://{HOST}:{port}; Ctrl-C ends it\n")
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()


def _stamp(folder: RunFolder) -> tuple[object, ...]:
    """Stamp a folder by what changes with each answer: sizes and times of files written while questions are asked."""
    stamp: list[object] = [folder.path]
    for path in (folder.path / SPEC, folder.path / PREDICTIONS):
        with suppress(OSError):
            status = path.stat()
            stamp += [status.st_size, status.st_mtime_ns]
    return tuple(stamp)

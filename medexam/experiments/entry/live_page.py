"""The page of `medexam report --html` as a server on this machine gives it, made anew while questions are asked.

It writes nothing into a run folder that another process is writing, and answers no address but this machine's.
"""

import html
import sys
from collections.abc import Sequence
from contextlib import suppress
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
from medexam.experiments.store.run_folder import PREDICTIONS, SPEC, find_runs, run_paths

_HOST = "127.0.0.1"
_EVERY_S = 5.0
"""Seconds after which a page loads itself again."""
_REST = 5
"""How many times as long as it takes to make the page it stays as it is."""


def serve_runs(runs: Sequence[Path], runs_dir: Path, port: int) -> None:
    """Answer requests for the page of these runs, or of all in `runs_dir`, on 127.0.0.1 until Ctrl-C."""
    if runs:
        find_runs(run_paths(runs, runs_dir))
    lock, again = Lock(), {"Refresh": f"{_EVERY_S:g}"}
    state, due, page = None, 0.0, (b"", again)

    def current() -> tuple[bytes, dict[str, str]]:
        """Return the page as bytes, made again once the runs' files have changed, with when to load it again."""
        nonlocal state, due, page
        start, folders = monotonic(), find_runs(run_paths(runs or [runs_dir], runs_dir))
        files = [path for folder in folders for path in (folder.path / SPEC, folder.path / PREDICTIONS)]
        stats = [(path, path.stat()) for path in files if path.exists()]
        now = [(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats]
        if now != state and start >= due:
            stored = [current_run(folder, lambda _: None) for folder in folders]
            # A page shows the runs of one benchmark: those that began last.
            page_runs = next(family for family in split_families(stored) if stored[-1] in family)
            body = "".join(render_page(page_runs)).encode("utf-8", "replace")
            page = body, {} if all(run.complete for run in stored) else again
            state, due = now, monotonic() + _REST * (monotonic() - start)
        return page

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A page elsewhere that guesses the port must not read exams by a name that leads here.
            is_ours = self.headers.get("Host", "").rpartition(":")[0] in {_HOST, "localhost"}
            if not is_ours or urlsplit(self.path).path != "/":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            try:
                with lock:
                    body, refresh = current()
            except (MedExamError, OSError) as error:
                notice = f"<!doctype html><title>medexam</title><p>{html.escape(str(error))}</p>"
                body, refresh = notice.encode(), again
            self.send_response(HTTPStatus.OK)
            headers = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body))}
            for name, value in {**headers, "Cache-Control": "no-store", **refresh}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Write nothing: a line for each request would stand between those of the run."""

    try:
        server = ThreadingHTTPServer((_HOST, port), Handler)
    except OSError as error:
        raise SpecError(f"cannot listen on {_HOST}:{port} ({error.strerror}); choose another port") from None
    sys.stderr.write(f"The page is at http://{_HOST}:{port}; Ctrl-C ends it\n")
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()

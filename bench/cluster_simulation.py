"""How busy workers keep the servers of a cluster, and what a lost server costs, by simulated time.

    python bench/cluster_simulation.py table
    python bench/cluster_simulation.py faults --servers 16 --workers 4

medexam's own scheduler, engine, batcher, server pool, adaptive limit, retries and registry work here as in a run.
Simulated are time, the servers (`simulated/server.py`) and the processors of workers: a question costs a worker
`--cost-ms`. A worker can therefore ask no more than 1 / cost questions a second. Minutes pass in the time that this
processor needs for the clients' work, 0.15 ms a question.

`table` asks enough questions for `--seconds` at each number of servers and workers. `busy` is the share of the servers'
capacity that was used between a fifth and four fifths of the answers; `whole` counts from the first question to the
last answer. `faults` lets something happen to one server at 0.4 of `--seconds`, and compares the
time to the last answer with the best possible: that of the same run without the fault, plus the lost capacity over what
is left. `--seed` decides all that is random. Prints a table to standard error and one JSON document.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from simulated.cluster import Event, Found, Setting, simulate
from simulated.server import State

SERVERS = (1, 4, 8, 16, 64)
WORKERS = (1, 2, 4, 8, 16)
BEGINS, ENDS = 0.4, 0.6
"""When something happens to a server, and when it is over, as shares of `--seconds`."""


@dataclass(frozen=True)
class Fault:
    """What happens to one server."""

    says: str
    begins: Event
    ends: Event | None
    lost: float
    """The share of its rate that is lost while it lasts."""


def faults(seconds: float) -> dict[str, Fault]:
    at, until = BEGINS * seconds, ENDS * seconds
    again = Event(until, 1, State.WORKS)
    return {
        "dies": Fault("its process dies", Event(at, 1, State.DEAD), None, 1.0),
        "returns": Fault("its process dies and starts again", Event(at, 1, State.DEAD), again, 1.0),
        "refuses": Fault("it replies with 503 for a while", Event(at, 1, State.REFUSES), again, 1.0),
        "slows": Fault("it works at a quarter of its rate", Event(at, 1, State.WORKS, rate=0.25), None, 0.75),
        "silent": Fault("its machine loses its power", Event(at, 1, State.SILENT), None, 1.0),
    }


def best_s(undisturbed: float, fault: Fault, seconds: float, servers: int) -> float:
    """The time of the undisturbed run if nothing but the server's capacity is lost."""
    at, until = BEGINS * seconds, ENDS * seconds
    left = 1 - fault.lost / servers
    if fault.ends is not None:
        return undisturbed + (until - at) * (1 - left)
    return at + (undisturbed - at) / left


def run(setting: Setting) -> Found:
    with tempfile.TemporaryDirectory(prefix="medexam-simulation-") as folder:
        return simulate(setting, Path(folder))


def say(*cells: Any) -> None:
    sys.stderr.write("| " + " | ".join(map(str, cells)) + " |\n")
    sys.stderr.flush()


def make_setting(arguments: argparse.Namespace, servers: int, workers: int) -> Setting:
    setting = Setting(
        servers, workers, 1, cost_ms=arguments.cost_ms, rate=arguments.rate,
        latency_s=arguments.latency_ms / 1000, slots=arguments.slots, seed=arguments.seed,
    )  # fmt: skip
    return replace(setting, questions=max(int(setting.possible * arguments.seconds), 1))


def make_table(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    say("servers", "workers", "questions/s", "busy", "whole", "processors", "shares", "in flight", "real s")
    for servers in arguments.servers or SERVERS:
        for workers in arguments.workers or WORKERS:
            setting = make_setting(arguments, servers, workers)
            found = run(setting)
            say(
                servers, workers, round(found.busy * servers * setting.rate), found.busy, found.busy_whole,
                found.client_busy, "{} to {}".format(*found.shares), found.in_flight, found.real_s,
            )  # fmt: skip
            yield {"setting": asdict(setting), "found": asdict(found)}


def try_faults(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    (servers,), (workers,) = arguments.servers or [16], arguments.workers or [4]
    setting = make_setting(arguments, servers, workers)
    undisturbed = run(setting)
    say("the second of", servers, "servers", "took s", "best s", "more", "failed")
    say("nothing happens", "", "", undisturbed.took_s, "", "", undisturbed.failed)
    yield {"setting": asdict(setting), "found": asdict(undisturbed)}
    for name, fault in faults(arguments.seconds).items():
        if arguments.only and name not in arguments.only:
            continue
        disturbed = replace(setting, events=tuple(event for event in (fault.begins, fault.ends) if event is not None))
        found = run(disturbed)
        best = best_s(undisturbed.took_s, fault, arguments.seconds, servers)
        more = found.took_s / best - 1
        say(fault.says, "", "", found.took_s, round(best, 2), f"{more:+.1%}", found.failed)
        yield {"fault": name, "best_s": round(best, 3), "more": round(more, 4), "found": asdict(found)}


def main() -> None:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--servers", type=int, nargs="+")
    shared.add_argument("--workers", type=int, nargs="+")
    shared.add_argument("--rate", type=float, default=600.0, help="questions a second of one server")
    shared.add_argument("--latency-ms", type=float, default=50.0, help="of one question on an idle server")
    shared.add_argument("--slots", type=int, default=256, help="questions that a server works on at once")
    shared.add_argument("--cost-ms", type=float, default=0.35, help="processor time of a worker for a question")
    shared.add_argument("--seed", type=int, default=8)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    table = parts.add_parser("table", parents=[shared])
    table.add_argument("--seconds", type=float, default=5.0, help="how long the questions last at best")
    trials = parts.add_parser("faults", parents=[shared])
    trials.add_argument("--seconds", type=float, default=30.0, help="how long the questions last at best")
    trials.add_argument("--only", nargs="+", choices=list(faults(1.0)))
    arguments = parser.parse_args()
    rows = {"table": make_table, "faults": try_faults}[arguments.part](arguments)
    print(json.dumps({"part": arguments.part, "rows": list(rows)}, indent=1))


if __name__ == "__main__":
    main()

"""`medexam list`, `show`, `rm` and `board`: the runs that are kept."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medexam.cli.options import RUNS, JsonOption, LatexOption, MarkdownOption, RunsArgument, RunsDirOption
from medexam.cli.output import print_json, print_result, read_current
from medexam.errors import DatasetError, EngineError, RunFolderError
from medexam.kept import reads_kept
from medexam.text import count_of, nearest, print_notice

if TYPE_CHECKING:
    from medexam.experiments.store.run_folder import RunFolder
    from medexam.experiments.store.stored_run import StoredRun


@reads_kept()
def list_runs(runs_dir: RunsDirOption = RUNS, as_json: JsonOption = False) -> None:
    """List the stored runs, the newest last.

    For example:
        medexam list
    """
    from medexam.experiments.compare.noise import describe_unequal
    from medexam.experiments.report.current import current_run
    from medexam.experiments.report.shown import Terminal, print_blocks
    from medexam.experiments.store.run_folder import METRICS, runs_inside, split_id
    from medexam.experiments.store.stored_run import stored_run
    from medexam.tables import NONE, Table, percent

    records, documents, rows = [], list[dict[str, Any]](), []
    for folder in runs_inside(runs_dir):
        name, digest = split_id(folder.name)
        try:
            # A run without scores is still asked, or was killed before its end.
            has_scores = (folder.path / METRICS).exists() and not folder.shard_logs
            run = stored_run(folder) if has_scores else current_run(folder, print_notice)
            documents += [run.document()] * as_json
        except (RunFolderError, DatasetError, EngineError) as error:
            print_notice(f"warning: {folder.name} cannot be read: {error}")
            path = str(folder.path.resolve())
            documents.append({"run_id": folder.name, "run_dir": path, "status": "damaged", "damage": str(error)})
            rows.append((digest, name, NONE, "damaged", NONE))
            continue
        records.append((folder, run.record))
        scores, state = run.metrics, ", running" * run.running
        count = f"{scores.n:,}" if scores.n == scores.selected else f"{scores.n:,} of {scores.selected:,}{state}"
        started_on = str(run.environment.get("started_at", NONE))[:10]
        rows.append((digest, name, started_on, count, percent(run.score)))
    if as_json:
        print_json(documents)
    elif rows:
        title = f"{count_of(len(rows), 'run')} in {runs_dir}"
        caption = "An id is a name and a digest. In every command the first digits of the digest are enough."
        headers = ("Digest", "Name", "Began", "Scored", "Score, %")
        print_blocks(Terminal(), [Table(title, headers, tuple(rows), text_columns=3, caption=caption)])
    else:
        sys.stderr.write(
            f"medexam: no runs in {runs_dir}; --runs-dir names another folder, and `medexam run` makes runs\n"
        )
    for line in describe_unequal(records):
        print_notice(f"warning: {line}")


def remove(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Ids in the runs directory, or run folders."),
    ],
    runs_dir: RunsDirOption = RUNS,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
) -> None:
    """Remove stored runs; their copies in MLflow stay.

    For example:
        medexam rm 3c2aae
    """
    from medexam.experiments.store.run_folder import find_run, remove_runs

    folders = list(dict.fromkeys(find_run(run, runs_dir) for run in runs))
    sys.stderr.writelines(f"{folder.path}\n" for folder in folders)
    if not yes and not typer.confirm(f"Remove {'this run' if len(folders) == 1 else f'these {len(folders)} runs'}?"):
        raise typer.Exit(1)
    remove_runs(folders)
    print_notice(f"removed {count_of(len(folders), 'run')}")


def show(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A run's id, its beginning, or its folder."),
    ],
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The key of a question, or its end; `17` may be enough.")
    ] = None,
    runs_dir: RunsDirOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Show a stored run: its state, settings and files, or what it answered to one question.

    For example:
        medexam show 3c2aae
        medexam show 3c2aae headqa-v1/2016/biology/8
    """
    from medexam.experiments.report.current import current_run
    from medexam.experiments.store.run_folder import find_run

    folder = find_run(run, runs_dir)
    if question is not None:
        _show_question(folder, question, as_json=as_json)
        return
    stored_run = current_run(folder, print_notice)
    print_json(stored_run.document()) if as_json else _print_run(stored_run)


def _print_run(stored_run: "StoredRun") -> None:
    from medexam.experiments.report.findings import findings
    from medexam.experiments.report.run_tables import describe_settings, describe_state
    from medexam.experiments.report.shown import Block, Terminal, Unbroken, print_blocks

    path, state = stored_run.folder.path, describe_state(stored_run)
    files = sorted(file.name for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    warnings = stored_run.record.warnings if stored_run.running else stored_run.warnings
    blocks: list[Block] = [
        f"{stored_run.record.cell.name}: {stored_run.title}",
        *findings([stored_run]),
        *filter(None, [stored_run.record.description]),
        state if stored_run.complete else Unbroken(state),
        *(f"Warning: {warning}" for warning in warnings),
        describe_settings(stored_run),
        Unbroken(f"Files in {path}:"),
        ", ".join(files),
        Unbroken(f"`medexam report {path}` shows its scores."),
    ]
    print_blocks(Terminal(), blocks)


def _show_question(folder: "RunFolder", query: str, *, as_json: bool) -> None:
    from medexam.cli.items import plain_terminal, print_item, print_prediction
    from medexam.experiments.store.items import load_items

    record, predictions = folder.read_record(), folder.read_predictions()
    key = _find_key(query, record.questions)
    prediction = predictions.get(key)
    if as_json:
        print_json({"question": key, "status": "pending"} if prediction is None else prediction.to_json())
        return
    console = plain_terminal()
    try:
        items = load_items(folder, frozenset({key}))
        for item in items.questions:
            print_item(console, item, items.golds[key])
    except DatasetError as error:
        print_notice(f"the question itself cannot be shown: {error}")
        console.print(key, style="bold cyan")
    print_prediction(console, prediction)


def _find_key(query: str, keys: tuple[str, ...]) -> str:
    """Find the key of the run that is meant, by itself or by its end; raises `RunFolderError` unless that is one."""
    matches = [key for key in keys if key == query] or [key for key in keys if key.endswith(f"/{query}")]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise RunFolderError(f"the run asked no question {query}: give a key such as {nearest(query, keys) or keys[0]}")
    ellipsis = ", ..." if len(matches) > 5 else ""
    raise RunFolderError(
        f"{query} may be {len(matches)} questions: {', '.join(matches[:5])}{ellipsis}; give more of the key"
    )


def board(
    runs: RunsArgument = None,
    as_json: JsonOption = False,
    markdown: MarkdownOption = None,
    latex: LatexOption = None,
    runs_dir: RunsDirOption = RUNS,
) -> None:
    """Show the models of stored runs over several benchmarks: scores, mean rank, and what is missing.

    For example:
        medexam board runs --markdown board.md
    """
    from medexam.experiments.report.leaderboard import make_leaderboard
    from medexam.experiments.store.run_folder import find_runs

    leaderboard = make_leaderboard(read_current(find_runs(runs or [runs_dir], runs_dir)))
    print_result(leaderboard, as_json=as_json, markdown=markdown, latex=latex)

"""`medexam index`: encode a corpus for dense retrieval, and say what an index holds.

It parses, calls `medexam.retrievers` and prints; it knows nothing of vectors.
"""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.flags.index import BuildSettings
from medexam.cli.options import JsonOption, settings_as_flags

app = typer.Typer(help="Vector indexes for dense retrieval.", no_args_is_help=True)


@app.command()
@settings_as_flags
def build(settings: BuildSettings, as_json: JsonOption = False) -> None:
    """Encode a corpus into an index; Ctrl-C keeps what is done, and the same command continues."""
    from medexam.cli.actions.index import encode_corpus

    encode_corpus(settings, as_json=as_json)


@app.command()
def info(folder: Annotated[Path, typer.Argument(metavar="DIR")], as_json: JsonOption = False) -> None:
    """Say what an index holds; exit code 2 where it cannot be used."""
    from medexam.cli.actions.index import print_index

    print_index(folder, as_json=as_json)

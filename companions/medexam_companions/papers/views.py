"""What `medexam reproduce` prints: the list, a plan, and what was made."""

from medexam.cli import Terminal, print_json, print_lines, print_tables
from medexam.experiments import print_blocks
from medexam.tables import NONE, Table
from medexam_companions.papers.catalogue import PaperEntry, list_entries
from medexam_companions.papers.making import PaperPlan, Reproduced


def print_list(*, as_json: bool) -> None:
    """Print every table and figure, paper by paper."""
    entries = list_entries()
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "title": entry.item.title,
                    "specs": list(entry.item.specs),
                    "obstacle": entry.item.obstacle or None,
                }
                for entry in entries
            ]
        )
        return
    console = Terminal()
    for paper in dict.fromkeys(entry.paper.layout for entry in entries):
        paper_entries = [entry for entry in entries if entry.paper.layout == paper]
        rows = tuple((entry.name, _title(entry)) for entry in paper_entries)
        title = f"{paper_entries[0].paper.paper} (arXiv {paper_entries[0].paper.arxiv})"
        print_tables(console, [(Table(title, ("Name", "What"), rows, text_columns=2), "")])
    print_lines(console, ["medexam reproduce NAME makes one; --plan says what it needs"])


def _title(entry: PaperEntry) -> str:
    """Return what the entry holds, and why it is not made if it is not."""
    return f"{entry.item.title} (not made: {entry.item.obstacle})" if entry.item.obstacle else entry.item.title


def print_paper_plan(planned: PaperPlan, *, as_json: bool) -> None:
    """Print what making the entry needs: runs, questions, GPUs and hours, and what is missing here."""
    if as_json:
        print_json(planned.document())
        return
    console, lines, rows = Terminal(), [], []
    for part in planned.document()["parts"]:
        if part["missing"]:
            lines.append(f"not here: {part['spec']}: {part['missing']}")
        for cell in part["cells"]:
            hours = NONE if cell["hours"] is None else f"{cell['hours']:,.2f}"
            gpus = NONE if cell["gpus"] is None else str(cell["gpus"])
            label = " ".join(filter(None, (cell["program"], cell["model"], cell["language"])))
            rows.append((label, f"{cell['questions']:,}", f"{cell['owed']:,}", f"{cell['calls']:,}", gpus, hours))
            lines += [f"warning: {line}" for line in cell["warnings"]]
    if rows:
        table = Table(planned.entry.heading, ("Run", "Questions", "Pending", "Calls", "GPUs", "Hours"), tuple(rows))
        print_tables(console, [(table, planned.caption)])
    print_lines(console, [*planned.lines, *dict.fromkeys(lines)])


def print_reproduced(product: Reproduced) -> None:
    """Print the tables, and what a reader should know."""
    console = Terminal()
    print_tables(console, product.tables)
    print_blocks(console, [*product.footer, *([product.entry.item.note] if product.entry.item.note else [])])

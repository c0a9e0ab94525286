"""What a terminal of so many columns would show."""

from rich.console import Console


def draw(*tables: object, width: int = 100) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        for table in tables:
            console.print(table)
    return capture.get()

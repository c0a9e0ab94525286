"""Whether a program can answer the items of a benchmark of one's own, which are known once they are loaded.

Of every other data set the spec alone says so; `medexam.specs.matrix` checks it.
"""

from medexam.errors import SpecError
from medexam.questions import AnySet, Task
from medexam.specs import CellSpec


def check_answerable(cell: CellSpec, items: AnySet) -> None:
    """Raise `SpecError` if the program answers questions of another form than those of the benchmark."""
    program, called = cell.program, cell.dataset.called
    if program.answers_anything:
        return
    tasks = [item for item in items.questions if isinstance(item, Task)]
    if tasks and not program.answers_tasks:
        raise SpecError(
            f"program {program.kind} chooses an option, and the questions of {called} are answered in words: set "
            "program.kind to short_answer or quote, or to a module of your own"
        )
    if not tasks and program.answers_tasks:
        raise SpecError(
            f"program {program.kind} answers in words, and the questions of {called} have numbered options: set "
            "program.kind to zero_shot or another program that chooses one"
        )
    if program.asked_groups is None:
        return
    if unknown := {task.group for task in tasks} - set(program.asked_groups):
        raise SpecError(
            f"program {program.kind} has no prompt for the group {min(unknown)} of {called}: it has prompts for "
            f"{', '.join(program.asked_groups)}; give the questions one of these groups, or set another program.kind"
        )

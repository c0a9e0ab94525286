"""A question on the terminal, the right answer marked."""

from medexam.experiments.entry.terminal import Terminal
from medexam.questions import Gold, Question, Task, TaskGold


def print_question(console: Terminal, question: Question, gold: Gold) -> None:
    """Print key, exam, text and options; a star stands before each right option."""
    exam = question.exam
    subject = exam.discipline if exam.year is None else f"{exam.discipline} {exam.year}"
    console.print(f"{question.key}  {exam.name}, {subject}, {question.language}", style="bold cyan")
    if question.image is not None:
        console.print(f"(refers to the picture {question.image})", style="dim")
    console.print(question.asked)
    for option in question.options:
        right = gold.accepts(option.number)
        console.print(f"{'*' if right else ' '} {option.number}. {option.text}", style="green" if right else None)
    console.print()


def print_task(console: Terminal, task: Task, gold: TaskGold) -> None:
    """Print a question that is answered in words, with what is expected."""
    for text in filter(None, (task.context, task.question)):
        console.print(text)
    console.print(f"* {' / '.join(gold.answers)}", style="green")

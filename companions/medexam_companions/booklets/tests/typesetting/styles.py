"""Styles drawn by chance: what booklets of other years may look like."""

import random

from typesetting.booklet import Style


def choose_style(seed: int) -> Style:
    """The style of `seed`."""
    chance = random.Random(seed)
    columns = chance.choice([1, 2, 2])
    return Style(
        size=chance.choice([6, 7, 8, 8.5, 9, 9.5, 10, 10.5, 11, 12, *([13, 14] if columns == 1 else [])]),
        leading=chance.choice([1.0, 1.05, 1.15, 1.2, 1.35, 1.5]),
        columns=columns,
        margin=chance.choice([25, 35, 45, 60, 80] if columns == 1 else [25, 35, 45, 55]),
        gutter=chance.choice([8, 10, 14, 18, 25, 35]),
        font=chance.choice(["times", "helvetica"]),
        sizing=chance.choice(["font", "matrix", "page", "large", "flipped", "negative"]),
        filling=chance.choice(["ragged", "tw", "tc", "tj", "words", "glyphs", "kerned"]),
        spaces=chance.random() < 0.6,
        tracking=chance.choice([0, 0, 0, 0.1, 0.3]),
        justify=chance.random() < 0.6,
        hyphens=chance.random() < 0.5,
        rotate=chance.choice([0, 0, 0, 90, 180, 270]),
        turned=chance.choice([0, 0, 0, 0, 90, 270]),
        origin=chance.choice([(0, 0), (0, 0), (30, -20)]),
        question_label=chance.choice(["{}.", "{}.", "{}.-", "{})", "{} ."]),
        option_label=chance.choice(["{}.", "{}.", "{})", "{}.-"]),
        letters=chance.random() < 0.15,
        hanging=chance.choice([0, 1.6, 2.4, 3]),
        option_indent=chance.choice([0, 1, 2.4, 2.6, 3.5]),
        option_hanging=chance.choice([0, 1.2, 1.6, 2]),
        bold=chance.random() < 0.7,
        apart=chance.choice([0, 0.5, 1, 1]),
        header=chance.choice(["", "PRUEBAS SELECTIVAS 2021", "Biología - {}"]),
        footer=chance.choice(["", "- {} -", "{}", "Página {} de 40"]),
        rules=chance.random() < 0.25,
        cover=chance.random() < 0.7,
        seed=seed,
    )

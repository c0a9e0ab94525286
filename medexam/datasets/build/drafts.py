"""A question on its way from the booklet to the data set: mutable, with all that was noticed about it."""

from dataclasses import dataclass, field

from medexam.datasets.build.images import Picture
from medexam.datasets.build.pages.glyphs import Box
from medexam.datasets.build.pages.hyphens import Hyphen


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture that is printed inside a question."""

    box: Box
    option: int | None
    """The number of the option that it stands in; None for the stem."""


@dataclass(slots=True)
class Draft:
    """One question as it stands now."""

    number: int
    stem: str
    options: dict[int, str]
    """In the order of the booklet, by printed number."""
    boxes: tuple[Box, ...]
    """Where it stands, one box for each column or page that it runs over; none for one that was added by hand."""
    hyphens: tuple[Hyphen, ...] = ()
    restarted: bool = False
    """Whether its options began twice."""
    after: str = ""
    """Text that stands after it and belongs to no question."""
    drawings: tuple[Drawing, ...] = ()
    """Pictures printed inside it."""
    formulas: list[str] = field(default_factory=list)
    """What a formula reader made of `drawings`, those that it could read."""
    gold: int | None = None
    """The official answer; None when it was annulled."""
    picture: Picture | None = None

    @property
    def page(self) -> int | None:
        """The page that it begins on, from 1; None for one that was added by hand."""
        return self.boxes[0].page if self.boxes else None

    @property
    def text(self) -> str:
        """All of its text."""
        return " ".join([self.stem, *self.options.values()])

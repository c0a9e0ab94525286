"""Whether a key is the one of a booklet, and at which question they first part if it is not."""

from collections.abc import Iterator, Mapping

from medexam.errors import DatasetError
from medexam_companions.booklets.drafts import Draft
from medexam_companions.booklets.keys import Key, list_numbers

MOST_UNFOUND = 0.1
"""Share of a key's questions that may be missing in the booklet as it was read, to be added by corrections."""

_WAYS = "give the key of this booklet's exam and version"


def check_key_fit(
    key: Key,
    draft_by_number: Mapping[int, Draft],
    announced: int | None,
    version: str | None,
    added_numbers: frozenset[int],
) -> None:
    """Raise `DatasetError` if the key is of another exam or version than the booklet.

    `draft_by_number` are the questions that were read, `announced` how many the cover promises, `version` the booklet's
    own; `added_numbers` are of questions that corrections give. The error names the first question where key and
    booklet part.
    """
    if None not in (key.version, version) and key.version != version:
        raise DatasetError(
            f"{key.source}: is the key of version {key.version}, and the booklet is version {version}: {_WAYS}"
        )
    last = max([*draft_by_number, announced or 0])
    first = min(_find_partings(key, draft_by_number, last, added_numbers), default=None)
    if first is None:
        return
    number, reason = first
    booklet_numbers = set(range(1, last + 1))
    extra, lacking = sorted(set(key.answers) - booklet_numbers), sorted(booklet_numbers - set(key.answers))
    parts = [f"answers {list_numbers(extra)}, which the booklet does not ask" if extra else ""]
    parts += [f"has no row for {list_numbers(lacking)}" if lacking else ""]
    detail = " and ".join(part for part in parts if part)
    raise DatasetError(
        f"{key.source}: does not fit the booklet: it has {len(key.answers)} rows, the booklet {last} questions"
        f"{'; it ' if detail else ''}{detail}; they differ first at question {number}: {reason}: {_WAYS}"
    )


def _find_partings(
    key: Key, draft_by_number: Mapping[int, Draft], last: int, added_numbers: frozenset[int]
) -> Iterator[tuple[int, str]]:
    """Yield questions at which key and booklet part, each with the reason."""
    most = max((max(draft.options, default=0) for draft in draft_by_number.values()), default=0)
    unfound = set(key.answers) - set(draft_by_number) - added_numbers
    too_many = len(unfound) > MOST_UNFOUND * len(key.answers)
    for number, answer in key.answers.items():
        if number > last or (too_many and number in unfound):
            yield number, f"the key answers it, the booklet {_tell_before(number, draft_by_number)}"
        elif answer is not None and answer > most:
            yield number, f"the key says option {answer}, a question has {most} options at most"
    for number in range(1, last + 1):
        if number not in key.answers:
            page = f" on page {draft_by_number[number].page}" if number in draft_by_number else ""
            yield number, f"the booklet asks it{page}, the key has no row for it"


def _tell_before(number: int, draft_by_number: Mapping[int, Draft]) -> str:
    """Describe what the booklet has instead of a question that was not found in it."""
    before = max((other for other in draft_by_number if other < number), default=None)
    if before is None:
        return "has no question before it"
    after = min((other for other in draft_by_number if other > number), default=None)
    continuation = f"goes on with question {after}" if after else "ends"
    return f"{continuation} after question {before} on page {draft_by_number[before].page}"

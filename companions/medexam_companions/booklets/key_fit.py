"""Whether a key is the one of a booklet."""

from collections.abc import Sequence, Set

from medexam.errors import DatasetError
from medexam_companions.booklets.drafts import Draft
from medexam_companions.booklets.keys import Key, list_numbers

MOST_UNFOUND = 0.1
"""Share of a key's questions that may be missing in the booklet as it was read, to be added by corrections."""


def check_key_fit(
    key: Key, drafts: Sequence[Draft], announced: int | None, version: str, added_numbers: Set[int]
) -> None:
    """Raise `DatasetError` if the key is of another exam or version than the booklet.

    `drafts` are the questions that were read, `announced` how many the cover promises, `version` the booklet's own;
    `added_numbers` are of questions that corrections give.
    """
    way = "give the key of this booklet's exam and version"
    if key.version not in (None, version):
        raise DatasetError(
            f"{key.source}: is the key of version {key.version}, and the booklet is version {version}: {way}"
        )
    read = {draft.number for draft in drafts}
    last = max([*read, announced or 0])
    most = max(max(draft.options, default=0) for draft in drafts)
    extra = [number for number in key.answers if number > last]
    lacking = [number for number in range(1, last + 1) if number not in key.answers]
    beyond = [number for number, answer in key.answers.items() if answer is not None and answer > most]
    unfound = [number for number in key.answers if number <= last and number not in read | added_numbers]
    if len(unfound) <= MOST_UNFOUND * len(key.answers):
        unfound = []
    partings = {
        "answers {}, which the booklet does not ask": extra,
        "has no row for {}": lacking,
        f"gives {{}} an option over {most}, the most that a question has": beyond,
        "answers {}, not found in the booklet": unfound,
    }
    details = [text.format(list_numbers(numbers)) for text, numbers in partings.items() if numbers]
    if details:
        raise DatasetError(
            f"{key.source}: does not fit the booklet: it has {len(key.answers)} rows, the booklet {last} questions; "
            f"it {' and '.join(details)}: {way}"
        )

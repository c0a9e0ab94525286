"""What keeps one output from being what its prompt asked for, whatever its format."""

from medexam_companions.cliniqlink.measures.answers import ItemAnswer, open_answer
from medexam_companions.cliniqlink.measures.closed import Match, is_option, match_gold, read_verdict
from medexam_companions.cliniqlink.measures.items import PUBLISHED, Format, Malformed
from medexam_companions.cliniqlink.measures.lists import read_list_answer


def find_flaws(answer: ItemAnswer) -> tuple[Malformed, ...]:
    """Find the kinds of malformed output that an answer is of; a list item without options has none."""
    item, text = answer.item, answer.text
    match item.format:
        case Format.TRUE_FALSE:
            verdict = read_verdict(text)
            faults = [Malformed.NO_VERDICT] * (verdict.word is None) + [Malformed.TRAILING_TEXT] * verdict.trailing
        case Format.MULTIPLE_CHOICE:
            is_named = match_gold(item, text) is Match.FULL or is_option(item, text)
            faults = [] if is_named else [Malformed.NOT_AN_OPTION]
        case Format.LIST if not item.options:
            return ()
        case Format.LIST:
            faults = [Malformed.UNMATCHED_PIECE] * read_list_answer(item, text).malformed
        case _:
            return open_answer(answer, PUBLISHED).flaws
    return (*answer.flaws, *faults)

"""Accounts for every cell of a file: what each column is read as or why it is not, and what its owner has to say.

It knows rules of conservation: what no question shows is harmless by its name, repeats what is shown, or is asked for.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

from medexam.datasets.own.columns import KEYED, STANDARD, columns_in
from medexam.datasets.own.names import in_order, plain_name, word_lists
from medexam.datasets.own.options import LABELS, is_run, own_labels
from medexam.datasets.own.proposal import LOOKED_AT, Proposal
from medexam.datasets.own.questions import NO_PICTURE
from medexam.datasets.own.tables import value_of
from medexam.datasets.own.texts import unpack
from medexam.datasets.rows import Row
from medexam.questions import Question

_VOID = re.compile(
    r"(?:is |was |not )?(?:ann?ul[eéadlo]\w*|nullified|void(?:ed)?|deleted|eliminad\w|éliminée?|withdrawn"
    r"|removed|cancell?ed|suprimid\w|impugnad\w|excluded|invalid\w*|discarded|retired|rejected|unscored|not scored"
    r"|gestrichen|obsolete|deprecated|inactive|pilot|pretest)(?:\W+\w+){0,5}\W*",
    re.IGNORECASE,
)
"""What a cell says of a question that is not to be asked."""
_FILE = re.compile(
    r"(?i)\.(?:png|jpe?g|gif|bmp|svg|webp|tiff?|dcm|mp3|wav|ogg|mp4|avi|mov)\b|^data:(?:image|audio|video)/"
)
_UNCLEAN = re.compile(
    r"(?im)<(?:img|audio|video|object|iframe|svg|math)\b|!\[[^\]\n]*\]\(|@@PLUGINFILE@@|\\includegraphics|\ufffd"
    r"|Ã[\x80-\xbf¡-¿]|Â[\xa0-\xbf]|â€|\bdata:(?:image|audio|video)/"
    r"|[(\[]\s*(?:ann?ul|anul|void|delet|withdraw|cancel|elimin)\w*\s*[)\]]"
    r"|\[(?:image|img|figure|audio|video|imagen|figura|bild)\b[^\]\n]*\]|&(?:#\d+|[a-z]{2,8});|^\\N$|^array\(|^[\[({]\s*['\"]"
    r"|['\"]\s*[\])}]$|^(?:options?|choices|opciones|answers?)\s*:\s*$|\.(?:png|jpe?g|gif|bmp|svg|webp|dcm|mp3|wav|mp4)\b"
    r"|[(\[]\s*(?:correct|right|answer|key|ans)\W+\w+\W*[)\]]"
)
"""What no text for a reader holds: pictures' names, tags, containers, signs of a wrong encoding, and answers."""
_UNCLEAN_OPTION = re.compile(
    r"(?im)^[^:\n]{0,40}:$|[✓✔✅☑√]"
    r"|[(\[]\s*(?:the )?(?:right|richtig|correct|corret|vrai|juste|esatt)\w*(?: \w+)?\s*[)\]]"
)
"""What says that an option is right, or stands before options and is none."""
_PICTURE = r"(?:figure|image|picture|photo(?:graph)?|radiograph|imagen|figura|fotograf[ií]a|abbildung|immagine|foto)"
_SPEAKS = re.compile(
    rf"(?i)\b(?:see|shown|in|this|following|accompanying|attached|siguiente|adjunta|folgenden?|suivante)\W+"
    rf"(?:(?:the|la|der|die|an?)\W+)?{_PICTURE}\b|\b{_PICTURE}\W+(?:below|above|shown|attached|adjunta|\d)"
)
"""What speaks of a picture."""
_SUSPECT = re.compile(r"[<!\[({@\\ÃÂâ\ufffd&:✓✔✅☑√]|\.[A-Za-z]|['\"]$", re.MULTILINE)
_PICTURED = ("figur", "imag", "immag", "pictur", "photo", "radiogr", "foto", "abbild")
"""What every odd text has, and every text that speaks of a picture: one look that decides for most rows."""
_BRACKET = re.compile(r"[(\[][^()\[\]]*[)\]]\Z")
_NOTHING = frozenset(("none", "null", "na", "nil", "empty", "?", "x"))
"""What may be an option, or say that there is none."""
_SHORT = 30
"""Characters of a context that may be none."""
_NUMBER = re.compile(r"\s*-?\d+(?:[.,]\d+)?\s*%?\s*")
_COUNTING = re.compile(r"\s*(\D{0,20}?)(\d{1,9})\s*")
"""A number; and what numbers a row, perhaps behind a word."""
_COUNTED = 0.99
"""The share of rows that have the usual number of options where no row is doubtful."""
_BY_CHANCE = 3
"""Options of one row that may begin with letters in order, as species do."""
_LONGEST_TOPIC, _LONGEST_CONSTANT = 6, 3
"""Words of a cell on average that still name something; and of one that all rows have."""


def audit(draft: Proposal) -> None:
    """Account for the columns of a proposal, and ask for what is not: columns, void rows, empty cells and odd texts."""
    void = _ask_void(draft)
    accounts = {
        column: "ignored: leave_out decides" if column in void else reading for column, reading in _account(draft)
    }
    wide = max(map(len, accounts), default=0)
    draft.notes[1:1] = [
        f"{column:{wide}}  {'to decide: ' if _is_open(reading) else ''}{reading}"
        for column, reading in accounts.items()
    ]
    ignored = [column for column, reading in accounts.items() if reading.startswith("ignored")]
    draft.columns |= {"ignored": ignored} if ignored else {}
    facts = "; ".join(f"{column} ({reading})" for column, reading in accounts.items() if _is_open(reading))
    if facts and not {f"columns.{name}" for name in ("stem", "options", "answer", "choices")} & draft.open.keys():
        listed = f": [{', '.join(ignored)}] and perhaps more" if ignored else ""
        draft.ask(
            "ignored",
            f"the columns that no question needs{listed}; or read them as context, image, answer ...: {facts}",
        )
    above = []
    for field in ("context", "subject", "exam", "year", "stem"):
        for column in columns_in(draft.columns.get(field)):
            # A column that is filled once a group.
            values = [value_of(row.record, column) for row in draft.table.rows]
            follows = any(a is not None and b is None for a, b in pairwise(values))
            repeats = any(a is not None and a == b for a, b in pairwise(values))
            if follows and not repeats and 2 * values.count(None) >= len(values):
                above.append(f"{column} is empty in {values.count(None):,} of {len(values):,} rows")
    if above:
        draft.ask("as_above", f"the columns whose empty cells mean the cell above, or []: {'; '.join(above)}")
    doubts = dict(_doubts(draft))
    if doubts:
        facts = "; ".join(f"{topic}: {detail}" for topic, detail in doubts.items())
        draft.ask("accepted", f"[{', '.join(doubts)}] if this is as it should be, else correct the file: {facts}")


def _is_open(reading: str) -> bool:
    """Return whether an account only shows what a column holds, and its owner has to say what it is."""
    return reading.endswith('"')


def _account(draft: Proposal) -> Iterator[tuple[str, str]]:
    """Yield each column with what it is read as, why it is ignored, or examples in quotation marks."""
    used = {
        column: field for field, value in draft.columns.items() if field in STANDARD for column in columns_in(value)
    }
    numbers = {row.number for row in draft.sample.rows}
    questions = {
        row.question.number: row for row in draft.rows if isinstance(row, Row) if row.question.number in numbers
    }
    cells: dict[str, list[tuple[int, list[Any]]]] = defaultdict(list)
    for row in draft.sample.rows:
        for column, value in row.record.items() if isinstance(row.record, Mapping) else ():
            for path, values in _leaves(value, column).items():
                cells[path] += [(row.number, values)] if values else []
    for path, filled in cells.items():
        outer = max((name for name in used if path == name or path.startswith(f"{name}.")), key=len, default=None)
        is_inner = outer is not None and path != outer and used[outer] == "options" and draft.kind == "choice"
        if path == KEYED or (outer is not None and not is_inner):
            yield path, used.get(outer or "", "answer")
        elif is_inner and (plain_name(path) in LABELS or _are_options(filled, questions)):
            yield path, "options"
        elif path in draft.agreeing:
            yield path, "ignored: says what the answer says"
        else:
            yield path, _account_for(path, filled, questions, draft)


def _account_for(
    path: str, rows: Sequence[tuple[int, list[Any]]], questions: Mapping[int, Row], draft: Proposal
) -> str:
    """Account for a column that no field is read from: by what its name says, what all rows say, or what is shown."""
    words = {word for part in path.split(".") for word in plain_name(part).split("_")}
    kinds = {name for name, hints in word_lists("hints").items() if words & {*hints}}
    texts = [" ".join(map(str, values)) for _, values in rows]
    different = list(dict.fromkeys(texts))
    examples = ", ".join(f'"{text:.40}"' for text in different[:3])
    if not rows:
        later = draft.table.filled(path)[:1]
        return f'"{later[0]!s:.40}"' if later else "ignored: empty"
    if {text.strip().casefold() for text in texts} <= {*NO_PICTURE} and "void" not in kinds:
        return "ignored: says no in all rows"
    media = word_lists("hints")["media"]
    if "media" in kinds or any(_FILE.search(text) or plain_name(text) in media for text in different):
        return f"{len(rows):,} rows have {examples}"
    if "explanation" in kinds:
        return "ignored: an explanation"
    length = sum(len(text.split()) for text in texts) / len(texts)
    is_plain = "harmless" in kinds and "needed" not in kinds
    if len(different) == 1 and len(rows) == len(draft.sample.rows) and (length <= _LONGEST_CONSTANT or is_plain):
        return f"ignored: {different[0]:.40} in all rows"
    if all(number in questions and _repeats(values, questions[number]) for number, values in rows):
        return "ignored: repeats what is shown"
    is_number = all(_NUMBER.fullmatch(str(value)) for _, values in rows for value in values)
    is_topic = is_plain or plain_name(path).rpartition("_")[2] in word_lists("hints")["harmless"]
    is_topic = is_topic or ("harmless" in kinds and is_number)
    sentences = sum(len(text.split()) > _LONGEST_CONSTANT and text.rstrip()[-1:] in ".?!。" for text in texts)
    if is_topic and length <= _LONGEST_TOPIC and 2 * sentences < len(texts):
        return "ignored: its name is harmless"
    counts = [(match[1], int(match[2])) for match in map(_COUNTING.fullmatch, texts) if match]
    is_count = len(counts) == len(texts) and counts == sorted({*counts}) and counts[0][1] < 2
    if is_count and counts[0][0] == counts[-1][0] and not {"option", "choice"} & words:
        return "ignored: numbers the rows"
    return examples


def _leaves(value: Any, path: str) -> dict[str, list[Any]]:
    """List the values within a cell that say something, by the path to them."""
    value = unpack(value)
    by_path: dict[str, list[Any]] = {}
    each_in = value if isinstance(value, (list, tuple)) else [value]
    for name, each in value.items() if isinstance(value, Mapping) else ((None, each) for each in each_in):
        within = path if name is None else f"{path}.{name}"
        if isinstance(each, (Mapping, list, tuple)):
            for deeper, values in _leaves(each, within).items():
                by_path.setdefault(deeper, []).extend(values)
        elif each is not None and each == each and str(each).strip():
            by_path.setdefault(within, []).append(each)
    return by_path or {path: []}


def _are_options(rows: Sequence[tuple[int, list[Any]]], questions: Mapping[int, Row]) -> bool:
    """Return whether values within a cell of options are options."""
    return all(
        any(_fold(str(value)).endswith(_fold(option.text)) for option in questions[number].question.options)
        for number, values in rows
        if number in questions
        for value in values
    )


def _repeats(values: Sequence[Any], row: Row) -> bool:
    """Return whether values stand in the question of a row; of its options all, or right ones alone."""
    question, right = row.question, {row.gold, *row.others}
    options = {_fold(option.text): option.number for option in question.options}
    if len(values) == len(options) and {*map(str, values)} <= {"0", "1", "0.0", "1.0", "True", "False"}:
        return {place for place, value in enumerate(values, 1) if str(value)[0] in "1T"} == right
    stem, context = _fold(question.stem), _fold(question.context or "")
    shown = " ".join([context, stem, *options])
    texts = [_fold(str(value)) for value in values]
    numbers = {options[text] for text in texts if text in options}
    if not all(text in options or text in (stem, context) or (len(text) > 12 and text in shown) for text in texts):
        return False
    return numbers <= right or len(numbers) == len(options)


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _ask_void(draft: Proposal) -> Mapping[str, Mapping[str, int]]:
    """Ask for rows that a column marks as annulled, deleted or not scored; return such columns."""
    texts = {
        name for field in ("stem", "options", "context", "answer") for name in columns_in(draft.columns.get(field))
    }
    hints, marks = word_lists("hints"), dict[str, dict[str, int]]()
    for column in filter(lambda name: name not in texts, draft.names):
        values = Counter(str(value).strip() for value in draft.table.filled(column))
        words = {*plain_name(column).split("_")}
        void = [value for value in values if _VOID.fullmatch(value)]
        if not void and words & {*hints["points"]} and len(values) in (2, 3):
            void = [value for value in ("0", "0.0") if value in values]
        if not void and words & {*hints["void"]} and (len(values) > 1 or 0 < values.total() < len(draft.table.rows)):
            void = [value for value, _ in values.most_common()[:-6:-1]]
        if void:
            marks[column] = {value: values[value] for value in void}
    if marks:
        counts = (", ".join(f"{value} in {n:,}" for value, n in each.items()) for each in marks.values())
        facts = "; ".join(f"{name} says {count}" for name, count in zip(marks, counts, strict=True))
        name, values_of_one = next(iter(marks.items()))
        decision = f"{{{name}: [{next(iter(values_of_one))}]}} if such rows are not asked, or {{}}"
        draft.ask("leave_out", f"{decision}: {facts} of {len(draft.table.rows):,} rows")
    return marks


def _doubts(draft: Proposal) -> Iterator[tuple[str, str]]:
    """Yield what is odd in the questions as they would be shown."""
    rows = [row for row in draft.rows if isinstance(row, Row)]
    if not rows:
        return
    some = rows[:: max(1, len(rows) // LOOKED_AT)]
    usual = Counter(len(row.question.options) for row in rows).most_common(1)[0][0]
    odd = [row.question for row in rows if len(row.question.options) != usual]
    # Records and columns say where each option ends.
    column = draft.columns.get("options")
    cells = [unpack(value) for value in draft.sample.filled(column)] if isinstance(column, str) else []
    is_told = bool(column) and all(
        isinstance((*value, None)[0] if isinstance(value, list) else value, Mapping) for value in cells
    )
    if is_told or len(odd) <= (1 - _COUNTED) * len(rows):
        fewest = min(len(row.question.options) for row in rows)
        longer = [row.question for row in rows if len(row.question.options) > fewest]
        odd = [each for each in longer if each.options[-1].text.casefold() in _NOTHING]
    if odd:
        yield "options", f"{len(odd):,} rows have not {usual} options, such as row {odd[0].number}: {_show(odd[0])}"
    first, second = ({row.question.options[place].text for row in rows} for place in (0, 1))
    if len(first) == 1 < len(second) and len(rows) >= _BY_CHANCE:
        yield "options", f"{min(first)!r} is the first option of all rows"
    unclean = [(row.question.number, text) for row in rows for text in _find_unclean(row.question)]
    if unclean:
        number, text = unclean[0]
        yield "texts", f"{len(unclean):,} texts are not clean, such as that of row {number}, which has {text!r:.40}"
    spoken = [
        row.question.number
        for row in rows
        if not row.question.image
        and any(part in row.question.stem.lower() for part in _PICTURED)
        and _SPEAKS.search(row.question.stem)
    ]
    if spoken:
        yield "pictures", f"{len(spoken):,} questions speak of a picture and have none, such as row {spoken[0]}"
    labelled = []
    for row in rows:
        labels = [label for label in own_labels([option.text for option in row.question.options]) if label]
        if len(labels) >= _BY_CHANCE and is_run(labels) and labels == in_order(labels):
            labelled.append(row.question)
    firsts = {tuple(option.text.split()[0] for option in row.question.options) for row in some}
    are_longer = all(" " in option.text for option in rows[0].question.options)
    if len(firsts) == 1 and are_longer and len(rows) >= _BY_CHANCE:
        labelled = [row.question for row in rows]
    if any(len(question.options) > _BY_CHANCE for question in labelled) or 2 * len(labelled) >= len(rows):
        facts = f"{len(labelled):,} rows have options after letters; marks: labels cuts them"
        yield "labels", f"{facts}: {_show(labelled[0])}"
    told = sum(map(_tells_in_stem, some))
    sign = _find_telltale(some)
    if told > 2 and 2 * told >= len(some):
        yield "signs", f"{told:,} of {len(some):,} questions begin or end in what the right option is called"
    elif sign is not None:
        yield "signs", f"only right options have {sign!r}; right_mark: {sign!r} takes it away"


def _show(question: Question) -> str:
    return f"{' / '.join(option.text for option in question.options):.120}"


def _tells_in_stem(row: Row) -> bool:
    """Return whether a question begins or ends in the letter, the number or the text of a right option."""
    stem = row.question.stem.casefold().strip(" .()[]")
    words = stem.split() or [""]
    right = [option for option in row.question.options if option.number in (row.gold, *row.others)]
    names = {name for each in right for name in (str(each.number), ascii_lowercase[each.number - 1])}
    texts = tuple(each.text.casefold().rstrip(" .") for each in right)
    return not names.isdisjoint(word.strip("()[].") for word in (words[0], words[-1])) or stem.endswith(texts)


def _find_unclean(question: Question) -> Iterator[str]:
    """Find what no reader would be shown: signs of a file, brackets around all options, and a context of few words."""
    options = "\n".join(option.text for option in question.options)
    texts = "\n".join([question.stem, question.context or "", options])
    for pattern, text in ((_UNCLEAN, texts), (_UNCLEAN_OPTION, options)):
        match = pattern.search(text) if _SUSPECT.search(text) else None
        if match is not None:
            yield match[0]
    first, last = question.options[0].text, question.options[-1].text
    if first[0] in "([{" and last[-1] in ")]}" and not {*")]}"} & {*first}:
        yield first
    context = question.context or "x" * _SHORT
    if len(context) < _SHORT and len(context.split()) <= _BY_CHANCE:
        yield context


def _find_telltale(rows: Sequence[Row]) -> str | None:
    """Find what stands at the beginning or end of right options alone, in at least half of the rows."""
    right: Counter[str] = Counter()
    wrong: set[str] = set()
    for row in rows:
        for option in row.question.options:
            text = option.text
            words = text.split()
            ends = {words[0], words[-1], " ".join(words[-2:])} if len(words) > 1 else set()
            ends |= {"capital letters"} if text.isupper() and len(text) > 3 else set()
            ends |= {bracket[0] for bracket in (_BRACKET.search(text),) if bracket and bracket.start()}
            ends |= {end for end in (text[:1], text[-1:]) if not end.isalnum() and len(text) > 1}
            if option.number in (row.gold, *row.others):
                right.update(ends)
            else:
                wrong |= ends
    often = [(token, times) for token, times in right.items() if token not in wrong]
    token, times = max(often, key=lambda pair: (pair[1], len(pair[0])), default=("", 0))
    return token if times > 2 and 2 * times >= len(rows) else None

"""Tables of translations: errors by set-up, the selection, and scores of the round trip."""

from collections.abc import Mapping, Sequence
from typing import Any

from medexam.tables import Table, decimal, percent

_FAULTS = {"empty_text": "Empty", "option_count": "Options", "numbering": "Numbering", "cut_off": "Cut off"}
_RULES = {
    "only_valid": "only one valid",
    "fewer_errors": "two valid",
    "most_similar": "three valid: of the two most similar",
}


def selection_tables(document: Mapping[str, Any]) -> list[Table]:
    """Build the tables of the errors of each set-up, and of how many questions each rule of the selection decided."""
    columns = ("setup", "judged", "valid", *_FAULTS, "same_as_source", "repeated", "chosen")
    counts = [count | count["faults"] for count in document["setups"]]
    headers = ("Set-up", "n", "Valid", *_FAULTS.values(), "Copied", "Repeated", "Chosen")
    errors = Table(
        f"{document['source']} to {document['target']} · {document['model']}",
        headers,
        tuple(tuple(str(count[column]) for column in columns) for count in counts),
        caption=(
            "n questions, by the errors of their translation; one with two errors counts under both. Empty: no text in "
            "the stem or in an option. Options: not as many as in the source. Numbering: not the source's. Cut off: at "
            "the budget of tokens. Copied: the source word for word. Repeated: a stem that several questions got. "
            "Neither is an error by itself. Chosen: by the rules below."
        ),
    )
    rules = [(_RULES[rule], str(number)) for rule, number in document["rules"].items()]
    rules.append(("none valid: discarded", str(len(document["discarded"]))))
    return [
        errors,
        Table(
            "Selection",
            ("Rule", "Questions"),
            tuple(rules),
            caption=(
                "Of two valid translations, or of the two most similar (Dice's coefficient over character trigrams), "
                "the one by the setup with fewer errors is kept."
            ),
        ),
    ]


def score_table(documents: Sequence[Mapping[str, Any]]) -> Table:
    """Build the table of round trip and reference scores, one row a language and set-up."""
    scores = [
        (
            *(document["target"], row["what"], row["setup"], str(row["questions"]), str(row["invalid"])),
            *(decimal(row["bleu"]), percent(row["bert_f1"])),
        )
        for document in documents
        for row in document["measured"]
    ]
    headers = ("Language", "Compared", "Set-up", "Questions", "Invalid", "BLEU", "BERTScore")
    signatures = dict.fromkeys(line for document in documents for line in document["signatures"])
    caption = (
        f"{'; '.join(signatures)}. Round trip: translated back, against the source. Reference: the translation against "
        "the published one. BLEU and BERTScore F1 from 0 to 100. Invalid: back-translations that fail the checks; they "
        "are scored as they are."
    )
    return Table("Quality", headers, tuple(scores), text_columns=3, caption=caption)

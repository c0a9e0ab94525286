"""Tables of translations: errors by set-up, the selection, scores of the round trip, lost terms and reviews."""

from collections.abc import Sequence

from medexam.tables import NONE, Captioned, Table, decimal, percent
from medexam_companions.audit.agreement import Agreement
from medexam_companions.audit.review_sheets import Review
from medexam_companions.translation.outcome import TranslationOutcome
from medexam_companions.translation.quality import Quality, TextScores
from medexam_companions.translation.terms import KINDS
from medexam_companions.translation.validity import TranslationFault
from medexam_companions.translation.writing import ASPECTS

_FAULTS = {
    TranslationFault.EMPTY_TEXT: "Empty",
    TranslationFault.OPTION_COUNT: "Options",
    TranslationFault.NUMBERING: "Numbering",
    TranslationFault.CUT_OFF: "Cut off",
}


def error_table(outcome: TranslationOutcome) -> Captioned:
    """Build the table of the errors of each set-up."""
    rows = tuple(
        (
            count.setup,
            str(count.judged),
            str(count.valid),
            *(str(count.faults[fault]) for fault in _FAULTS),
            str(count.same_as_source),
            str(count.repeated),
            str(count.chosen),
        )
        for count in outcome.counts
    )
    headers = ("Set-up", "n", "Valid", *_FAULTS.values(), "Copied", "Repeated", "Chosen")
    title = f"{outcome.source} to {outcome.target} · {outcome.model}"
    caption = (
        "n questions, by the errors of their translation; one with two errors counts under both. Empty: no text in the "
        "stem or in an option. Options: not as many as in the source. Numbering: not the source's. Cut off: at the "
        "budget of tokens. Copied: the source word for word. Repeated: a stem that several questions got. Neither is "
        "an error by itself. Chosen: by the rules below."
    )
    return Table(title, headers, rows), caption


def selection_table(outcome: TranslationOutcome) -> Captioned:
    """Build the table of how many questions each rule of the selection decided."""
    names = {
        "only_valid": "only one valid",
        "fewer_errors": "two valid",
        "most_similar": "three valid: of the two most similar",
    }
    rows = [(names[rule.value], str(number)) for rule, number in outcome.rules.items()]
    rows.append(("none valid: discarded", str(len(outcome.selection.discarded))))
    return (
        Table("Selection", ("Rule", "Questions"), tuple(rows)),
        "Of two valid translations, or of the two most similar (Dice's coefficient over character trigrams), the one "
        "by the setup with fewer errors is kept.",
    )


def score_table(qualities: Sequence[Quality]) -> Captioned:
    """Build the table of round trip and reference scores, one row a language and set-up."""
    rows = [(quality.target, row.what, row.setup, *_scores(row)) for quality in qualities for row in quality.measured]
    headers = ("Language", "Compared", "Set-up", "Questions", "Invalid", "BLEU", "BERTScore")
    caption = "; ".join(dict.fromkeys(line for quality in qualities for line in quality.signatures)) + "."
    caption += (
        " Round trip: translated back, against the source. Reference: the translation against the published one. BLEU "
        "and BERTScore F1 from 0 to 100. Invalid: back-translations that fail the checks; they are scored as they are."
    )
    return Table("Quality", headers, tuple(rows), text_columns=3), caption


def terms_table(qualities: Sequence[Quality]) -> Captioned:
    """Build the table of how many terms of the source the translations keep, by kind."""
    rows = tuple(
        (quality.target, row.setup, *(_kept(row.terms[kind], row.lost[kind]) for kind in KINDS), str(row.questions))
        for quality in qualities
        for row in quality.terms
    )
    headers = ("Language", "Set-up", "Numbers", "Doses", "Formulas", "Drugs", "Questions that lost one")
    caption = (
        "Kept of the terms in the source, percent. A number written as a word counts as lost; quality.json lists what "
        "is missing, by question."
    )
    return Table("Terms that must survive", headers, rows, text_columns=2), caption


def review_table(reviews: Sequence[Review]) -> Captioned:
    """Build the table of the mean marks of each reviewer."""
    rows = tuple(
        (review.reviewer, *(f"{decimal(review.mean(aspect))} ({len(review.marks[aspect])})" for aspect in ASPECTS))
        for review in reviews
    )
    return (
        Table("Reviews", ("Reviewer", *(aspect.capitalize() for aspect in ASPECTS)), rows),
        "Mean mark from 1 to 5, in brackets the questions marked.",
    )


def agreement_table(agreements: Sequence[Agreement]) -> Captioned:
    """Build the table of how far every two reviewers agree."""
    rows = tuple(
        (
            " and ".join(agreement.raters),
            agreement.aspect,
            str(agreement.n),
            percent(agreement.same),
            NONE if agreement.kappa is None else f"{agreement.kappa:.2f}",
        )
        for agreement in agreements
    )
    headers = ("Reviewers", "Aspect", "Questions", "Same mark", "Kappa")
    caption = "Questions that both marked; percent with the same mark; Cohen's kappa with quadratic weights."
    return Table("Agreement", headers, rows, text_columns=2), caption


def _scores(row: TextScores) -> tuple[str, ...]:
    bert = None if row.bert_f1 is None else 100 * row.bert_f1
    return str(row.questions), str(row.invalid), decimal(row.bleu), decimal(bert)


def _kept(terms: int, lost: int) -> str:
    return f"{percent((terms - lost) / terms)} of {terms}" if terms else NONE

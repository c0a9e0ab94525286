"""Round-trip scores: questions that were translated and translated back, against the source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam.benchmarks import find_benchmark
from medexam.errors import DatasetError, SpecError
from medexam.experiments import PlotPicture
from medexam.specs import DatasetSpec, validate
from medexam.tables import Captioned
from medexam_companions.papers.beside import Beside
from medexam_companions.papers.catalogue import PaperEntry
from medexam_companions.papers.paper import Grid
from medexam_companions.translation.layout import QuestionText, render_layout, text_of
from medexam_companions.translation.scores import BERT_MODEL, BertScore, score_bleu


@dataclass(frozen=True)
class RoundTrip:
    """An entry, the source and its questions as they came back."""

    entry: PaperEntry
    source_spec: DatasetSpec
    back_spec: DatasetSpec
    through: str
    """The language in between: the paper's row."""
    bert: str | None
    """BERTScore's model; None leaves it out."""

    @property
    def source(self) -> str:
        """The data sets in words."""
        return f"{self.source_spec.label} and {self.back_spec.label}, translated back from {self.through}"

    def make(self, _: Callable[[str], None]) -> tuple[Sequence[Captioned], Any, Sequence[PlotPicture]]:
        """Score the questions that both have by key; raises `DatasetError` if there is none or a file is missing."""
        references, backs = _texts(self.source_spec), _texts(self.back_spec)
        keys = [key for key in references if key in backs]
        if not keys:
            raise DatasetError(
                f"{self.entry.name}: no question of {self.back_spec.label} has the key of one in the source"
            )
        texts, sources = ([render_layout(side[key]) for key in keys] for side in (backs, references))
        bleu, f1, signatures = score_bleu(texts, sources), None, []
        signatures.append(bleu.signature)
        if self.bert is not None:
            bert = BertScore(self.bert)
            scores = bert.score(texts, sources)
            f1 = round(sum(scores) / len(scores), 2)
            signatures.append(bert.signature)
        own_grid = Grid(columns=("BLEU", "BERTScore F1"), rows={self.through: (round(bleu.score / 100, 2), f1)})
        comparison = Beside(self.entry.heading, own_grid, self.entry.figures, self.entry.paper.arxiv)
        table, caption = comparison.table
        alone = len(references) + len(backs) - 2 * len(keys)
        note = f"{len(keys):,} questions; {alone:,} are in only one of the two. {'; '.join(signatures)}."
        document = {**comparison.document(), "questions": len(keys), "unpaired": alone, "signatures": signatures}
        return [(table, f"{caption} {note}".strip())], document, ()


def plan_round_trip(entry: PaperEntry, overrides: Mapping[str, Any]) -> RoundTrip:
    """Return the entry with both data sets; raises `SpecError` for an unknown key, and without a `back`."""
    parts: dict[str, dict[str, Any]] = {"source": dict(entry.item.dataset), "back": {}}
    through, bert = "", BERT_MODEL
    for key, value in overrides.items():
        part, _, name = key.partition(".")
        if part in parts and name:
            *outer, last = name.split(".")
            fields = parts[part]
            for each in outer:
                fields = fields.setdefault(each, {})
            fields[last] = value
        elif key == "through":
            through = str(value)
        elif key == "bert":
            bert = value
        else:
            raise SpecError(f"--set {key}: {entry.name} takes source.KEY, back.KEY, through=LANGUAGE and bert=MODEL")
    if not parts["back"] or not through:
        raise SpecError(
            f"{entry.name}: name the questions that came back and the language in between, such as --set "
            "back.path=FOLDER --set through=gl"
        )
    back = parts["source"] | parts["back"]
    source_spec, back_spec = validate(DatasetSpec, parts["source"]), validate(DatasetSpec, back)
    return RoundTrip(entry, source_spec, back_spec, through, str(bert) if bert else None)


def _texts(spec: DatasetSpec) -> dict[str, QuestionText]:
    return {question.key: text_of(question) for question in find_benchmark(spec).load(spec).questions}

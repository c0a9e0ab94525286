"""Tables of what a run says of its evidence: verdicts on passages, what the model looked up itself, citations."""

from collections.abc import Iterator

from medexam.metrics import Metrics
from medexam.metrics.passages import ENTAILED
from medexam.metrics.results import WILSON
from medexam.metrics.retrieval_results import Checked, CitationMetrics, QueryMetrics, VerifiedMetrics
from medexam.tables import Captioned, Table, percent, with_interval


def evidence_tables(metrics: Metrics) -> list[Captioned]:
    """Show the tables of what the program does, each with its caption; empty if it does nothing of it."""
    evidence = metrics.evidence
    if evidence is None:
        return []
    tables: list[Captioned] = []
    if evidence.verified is not None:
        tables.append(_verified(evidence.verified))
    if evidence.queries is not None:
        tables.append(_queries(evidence.queries))
    if evidence.citations is not None:
        tables.append(_citations(evidence.citations))
    return tables


def _verified(verified: VerifiedMetrics) -> Captioned:
    rows = tuple(_verdict_rows(verified))
    drop_count = verified.passages - verified.kept
    share = f" ({percent(drop_count / verified.passages)} %)" if verified.passages else ""
    caption = (
        f"The verifier dropped {drop_count:,} of {verified.passages:,} passages{share}; none was left for "
        f"{verified.none_kept:,} of n = {verified.n:,} questions. Accuracy: percent of the answers that stand "
        f"({WILSON})."
    )
    return Table("Answers by the verifier's verdict", ("Verdict", "n", "Withdrawn", "Accuracy"), rows), caption


def _verdict_rows(verified: VerifiedMetrics) -> Iterator[tuple[str, ...]]:
    groups: tuple[tuple[str, Checked], ...] = (("supported", verified.supported), ("unsupported", verified.unsupported))
    for name, group in groups:
        yield name, str(group.n), str(group.withdrawn), with_interval(percent(group.accuracy), group.accuracy_interval)


def _queries(queries: QueryMetrics) -> Captioned:
    row = (f"{queries.rounds:.2f}", f"{queries.queries:.2f}", f"{queries.passages:.2f}", str(queries.none))
    caption = f"A question on average, n = {queries.n:,}; passages: different ones. The last column counts questions."
    return Table("What the model looked up", ("Rounds", "Queries", "Passages", "Without a query"), (row,)), caption


def _citations(citations: CitationMetrics) -> Captioned:
    share = citations.entailing / citations.scored if citations.scored else None
    row = (
        str(citations.named),
        str(citations.refused),
        str(citations.n - citations.named - citations.refused),
        str(citations.scored),
        with_interval(percent(share), citations.entailing_interval),
    )
    caption = (
        f"Counts of n = {citations.n:,} answers. Entailing: percent of the scored citations whose passage entails the "
        f"answer with a probability of {ENTAILED:g} or more, by program.reader ({WILSON})."
    )
    if citations.mean_support is not None:
        caption += f" Mean probability: {citations.mean_support:.3f}."
    columns = ("Name a passage", "Say that none supports", "No citation", "Scored", "Entailing")
    return Table("Citations", columns, (row,)), caption

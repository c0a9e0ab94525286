"""Tables of what else a run tells: calibration, position prior and abstention of option scores; passages and sources.

For the terminal and for Markdown, each with a caption that says how to read it. A run without option scores, or without
passages, has none of theirs.
"""

from medexam.distributions import WILSON
from medexam.metrics import Metrics, OptionScoreMetrics
from medexam.metrics.retrieval_results import RetrievalMetrics
from medexam.metrics.vote_results import OrderMetrics
from medexam.tables import NONE, Captioned, Table, coefficient, equals, percent, with_interval

SHOWN_SOURCES = 20
QUARTILES = ("1, lowest", "2", "3", "4, highest")
"""What the groups are called, from the lowest scores to the highest."""


def detail_tables(metrics: Metrics) -> list[Captioned]:
    """Show calibration, position and abstention, each with its caption; empty without option scores."""
    scores = metrics.option_scores
    if scores is None:
        return []
    # Shares of votes say no more of places than the table of the orders does.
    position = [_position(scores)] if metrics.orders is None or scores.by_shown_position else []
    return [_calibration(scores), *position, _abstention(scores)]


def vote_tables(metrics: Metrics) -> list[Captioned]:
    """Show how the score grows with the number of replies; empty if each question had one."""
    votes = metrics.votes
    if votes is None:
        return []
    points = [point for point in votes.curve if point.samples in {2**n for n in range(10)} | {votes.samples}]
    rows = tuple(
        (
            str(point.samples),
            with_interval(percent(point.accuracy), point.accuracy_interval),
            percent(point.pass_at),
        )
        for point in points
    )
    caption = (
        f"Percent of n = {votes.n:,}. Accuracy: of the commonest answer among the first replies ({WILSON}). pass@k: "
        f"how likely one of them is right. The commonest answer has {percent(votes.agreement)} % of the replies on "
        f"average. All agree on {percent(votes.unanimous)} % of the questions. {percent(votes.no_answer)} % of the "
        "replies hold no legal answer."
    )
    return [(Table("By number of replies", ("Replies", "Accuracy", "pass@k"), rows), caption)]


def order_tables(metrics: Metrics) -> list[Captioned]:
    """Show how often the option in each place is chosen; empty if each question was shown in one order."""
    orders = metrics.orders
    if orders is None:
        return []
    rows = tuple((str(count.place), percent(count.chosen), percent(count.right)) for count in orders.places)
    caption = (
        f"Percent of {orders.answered:,} orders with a legal answer, of n = {orders.n:,} questions in up to "
        f"{orders.orders} orders each. {_bias(orders)} One order alone is right on {percent(orders.single_accuracy)} % "
        f"of the questions on average, any order on {percent(orders.right_in_any)} %."
    )
    return [(Table("By place in the order", ("Place", "Chosen", "Right option"), rows), caption)]


def _bias(orders: OrderMetrics) -> str:
    if orders.chi_square is None or orders.p is None:
        return "Every legal answer is right, so nothing shows a position bias."
    return (
        f"Position bias: chi-square {orders.chi_square:.2f}, {orders.degrees} degrees of freedom, "
        f"p {equals(orders.p)} (Stuart and Maxwell, questions as clusters)."
    )


def score_headline(metrics: Metrics) -> list[tuple[str, str, str]]:
    """List rows for a report's headline (what, value, chance level); empty without orders and option scores."""
    scores, orders = metrics.option_scores, metrics.orders
    rows = []
    if orders is not None:
        in_all = with_interval(percent(orders.right_in_all), orders.right_in_all_interval)
        rows.append(("Right in every order, %", in_all, ""))
        rows.append(("Same answer in every order, %", percent(orders.consistent), ""))
    if scores is None:
        return rows
    if scores.label_mass is not None:
        rows.append(("Label mass, %", percent(scores.label_mass), ""))
    if scores.flip_rate is not None:
        rows.append(("Flip rate over the orders, %", percent(scores.flip_rate), ""))
    rows.append(("Questions with tied options", str(scores.tied), ""))
    return rows


def _calibration(scores: OptionScoreMetrics) -> Captioned:
    rows = tuple(
        (
            f"{100 * part.low:.0f} to {100 * part.high:.0f}",
            str(part.n),
            percent(part.mean_confidence),
            with_interval(percent(part.accuracy), part.accuracy_interval),
        )
        for part in scores.reliability
        if part.n
    )
    caption = (
        f"ECE {percent(scores.expected_calibration_error)} %, Brier score {scores.brier_score:.3f} (0 to 2), "
        f"n = {scores.n}. Confidence: the likeliest option's share of the probability, percent. "
        f"Accuracy: how often that option is right, with a 95 % interval ({WILSON})."
    )
    return Table("Calibration", ("Confidence", "n", "Mean confidence", "Accuracy"), rows), caption


def _position(scores: OptionScoreMetrics) -> Captioned:
    rows = tuple(
        (str(part.position), str(part.n), percent(part.mean_probability), percent(part.chosen), percent(part.gold))
        for part in scores.positions
    )
    if scores.by_shown_position:
        caption = (
            "Percent, averaged over all orders of the options that were shown. Over cyclic orders every option stands "
            "once at every place, so that what it says cancels out."
        )
    else:
        caption = "Percent of the questions that have the number, in the exam's own order."
    if scores.flip_rate is not None:
        caption += (
            f" Flip rate, the questions whose choice is not the same in all orders: {percent(scores.flip_rate)} %."
        )
    header = "Place shown" if scores.by_shown_position else "Number"
    return Table("Position", (header, "n", "Mean probability", "Chosen", "Right option"), rows), caption


def _abstention(scores: OptionScoreMetrics) -> Captioned:
    rows = tuple(
        (
            f"{100 * point.threshold:.0f}",
            percent(point.answered_ratio),
            str(point.right),
            str(point.wrong),
            percent(point.accuracy),
            percent(point.exam_score),
        )
        for point in scores.abstention
    )
    headers = ("Blank below", "Answered", "Right", "Wrong", "Accuracy", "Exam score")
    best = next(row for row, point in enumerate(scores.abstention) if point.threshold == scores.best_threshold)
    caption = (
        "Percent. What the run would score if it left blank the questions of less confidence; accuracy is that of the "
        "answered ones. The best exam score is stressed; chosen on these same questions, it is optimistic."
    )
    return Table("Abstention", headers, rows, best=frozenset({(best, headers.index("Exam score"))})), caption


def retrieval_tables(metrics: Metrics) -> list[Captioned]:
    """Show relevance quartiles and sources, each with its caption; empty without passages."""
    retrieval = metrics.retrieval
    return [] if retrieval is None else [_quartiles(retrieval), _sources(retrieval)]


def _quartiles(retrieval: RetrievalMetrics) -> Captioned:
    rows = tuple(
        (
            name,
            NONE if part.low is None or part.high is None else f"{part.low:.4g} to {part.high:.4g}",
            str(part.n),
            with_interval(percent(part.accuracy), part.accuracy_interval),
        )
        for name, part in zip(QUARTILES, retrieval.quartiles, strict=True)
    )
    caption = f"{_correlation(retrieval)} Groups by the best passage's score, in the retriever's own unit"
    if retrieval.borders is not None:
        borders = ", ".join(f"{border:.4g}" for border in retrieval.borders)
        caption += f", with borders at its quartiles {borders} (numpy.quantile); equal scores stay together"
    caption += f". Accuracy: percent, unanswered counts as wrong, with a 95 % interval ({WILSON})."
    if retrieval.without_passages:
        caption += f" Questions whose query found nothing: {retrieval.without_passages}."
    return Table("Relevance quartiles", ("Quartile", "Score", "n", "Accuracy"), rows), caption


def _correlation(retrieval: RetrievalMetrics) -> str:
    correlation = retrieval.score_correctness
    if correlation is None:
        return f"The score's correlation with being right cannot be computed, n = {retrieval.n}."
    r, low, high = (coefficient(value) for value in (correlation.r, *correlation.interval))
    return (
        f"r = {r} [{low}, {high}], p {equals(correlation.p)}, n = {retrieval.n}: "
        "correlation of the score with being right (point-biserial; Correa-Guillén et al. 2025 report 0.07 for MedCPT)."
    )


def _sources(retrieval: RetrievalMetrics) -> Captioned:
    sources = retrieval.by_source[:SHOWN_SOURCES]
    rows = tuple(
        (
            part.source,
            str(part.passages),
            percent(part.share),
            str(part.n),
            with_interval(percent(part.accuracy), part.accuracy_interval),
        )
        for part in sources
    )
    caption = (
        "Share: percent of the passages that were found. Best of: questions whose most relevant passage is of the "
        f"source; accuracy is theirs, percent, with a 95 % interval ({WILSON}). "
        f"Questions whose passages were cut to fit the context: {retrieval.cut}."
    )
    if len(retrieval.by_source) > len(sources):
        caption += f" The {len(sources)} most frequent of {len(retrieval.by_source)} sources."
    return Table("Passages by source", ("Source", "Passages", "Share", "Best of", "Accuracy"), rows), caption

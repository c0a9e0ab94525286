"""What the intervals of scores resample, in the words of legends, captions and sentences."""

from collections.abc import Iterable

from medexam.measures.results import Resampling


def describe_resampling(kinds: Iterable[Resampling], bootstrap: str, clusters: str) -> str:
    """Write `bootstrap over exams`, with `bootstrap` before `over`, and what is done with few of `clusters`.

    Each way that occurs once, in a fixed order; that of clusters if none does.
    """
    present_kinds = set(kinds) or {Resampling.CLUSTERS}
    phrases = {
        Resampling.CLUSTERS: f"{bootstrap} over {clusters}",
        Resampling.WITHIN_EXAMS: f"{bootstrap} over questions within exams if there are fewer than five exams",
        Resampling.TOO_FEW: f"no interval if {why_none(Resampling.TOO_FEW, clusters)}",
        Resampling.ALIKE: f"no interval if {why_none(Resampling.ALIKE, clusters)}",
    }
    return "; ".join(text for kind, text in phrases.items() if kind in present_kinds)


def why_none(kind: Resampling, clusters: str) -> str:
    """Say why there is no interval; `clusters` that are questions have no questions within them."""
    if kind is Resampling.ALIKE:
        return "every resample has the same result"
    if clusters.endswith("questions"):
        return f"there are fewer than five {clusters}"
    return "there are fewer than five exams, and one has fewer than five questions"

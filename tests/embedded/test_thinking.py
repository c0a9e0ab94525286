"""A model that thinks past its budget: asked, closed, counted and reported."""

from pathlib import Path

import medexam
from medexam.experiments import findings


def test_thinking_that_is_cut_off_is_reported_or_closed(thinking_model: Path, runs_dir: Path) -> None:
    spec = {
        "name": "thinking",
        "dataset": {"name": "headqa_sample", "language": "en", "limit": 2},
        "model": {"path": str(thinking_model), "thinking": "on", "max_tokens": 8},
        "matrix": {"program.answer_after_budget": [False, True]},
    }
    cut, closed = medexam.run(spec, runs_dir=runs_dir, progress=False, track=False)
    assert (cut.metrics.unanswered, cut.metrics.completion_tokens, cut.metrics.thinking_tokens) == (2, 16, 16)
    assert {str(said.reason) for said in cut.predictions.values()} == {"truncated_thinking"}
    assert (closed.metrics.unanswered, closed.metrics.completion_tokens, closed.metrics.thinking_tokens) == (0, 18, 16)
    assert all("</think>\n\n{Answer: " in said.reply for said in closed.predictions.values())
    assert cut.stored.record.spec_digest != closed.stored.record.spec_digest
    told = (cut.folder / "report.md").read_text(encoding="utf-8")
    assert "Thinking tokens" in told
    same, found = findings([cut.stored])
    assert same == "Read leniently, it scores the same."
    assert "2 of 2 replies cut at their budget while thinking (truncated_thinking)" in found

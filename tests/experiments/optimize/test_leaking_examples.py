"""Examples of one's own that hold a question of the tested or choosing exams are refused before anything is asked."""

import pytest
import yaml

from medexam.datasets import load_exam_set
from medexam.errors import SpecError
from medexam.experiments import plan_optimization
from medexam.specs import DatasetSpec


@pytest.mark.parametrize("split", ["dev", "test"])
def test_an_optimization_shows_no_question_that_it_chooses_by_or_is_for(split, document, tmp_path) -> None:
    question = load_exam_set(DatasetSpec(name="headqa_sample", split=split)).questions[0]
    options = [option.text for option in question.options]
    example = {"stem": question.stem, "discipline": "biology", "options": options, "answer": 1}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"en": [example]}))
    program = {"kind": "few_shot", "examples": str(path)}
    with pytest.raises(SpecError, match=f"mine.yaml: demonstration examples/1 is nearly {question.key}, which"):
        plan_optimization({**document, "program": program}, {}, runs_dir=tmp_path / "runs")

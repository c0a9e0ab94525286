"""What cannot be meant of companions' data sets and commands is refused in one line that says where the fault is."""

from pathlib import Path

import pytest

import medexam
from medexam.errors import SpecError
from medexam.specs import DatasetSpec, validate
from table_cases import read_cases

CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize("case", read_cases("refused_steps", CASES))
def test_steps(case, tmp_path) -> None:
    spec = {"name": "x", "dataset": {"name": case["dataset"]}, "program": {"steps": case["steps"]}}
    with pytest.raises(SpecError) as refused:
        medexam.plan(spec, runs_dir=tmp_path / "runs")
    (line,) = str(refused.value).splitlines()
    assert all(words in line for words in case["says"]), line


@pytest.mark.parametrize("case", read_cases("refused_datasets", CASES))
def test_a_data_set(case) -> None:
    with pytest.raises(SpecError, match=case["said"]):
        validate(DatasetSpec, case["dataset"])


@pytest.mark.parametrize("case", read_cases("typed_refusals", CASES))
def test_a_command(case, refused) -> None:
    assert case["way_out"] in refused(*case["typed"].split())

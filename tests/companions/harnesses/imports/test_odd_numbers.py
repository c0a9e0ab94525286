"""Numbers in the logs of others that are none: the sample is counted as one that failed, or the number is left out."""

import json
from pathlib import Path

import pytest

from medexam.companions.harnesses.imports.inspect_logs import _read_archive
from medexam.companions.harnesses.imports.reading import read_results
from medexam.companions.harnesses.imports.samples import ResultsError, read_count, read_seconds

LOG = Path(__file__).parent / "logs" / "inspect_headqa.eval"


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), -1, 1.5, "two", [1], 10**400])
def test_an_epoch_that_is_none_is_a_sample_that_failed(odd, tmp_path) -> None:
    header, samples = _read_archive(LOG)
    document = header | {"samples": [*samples]}
    (whole,) = read_results(LOG)[:1]
    document["samples"][0]["epoch"] = odd
    document["samples"][1].setdefault("output", {}).update(usage={"input_tokens": odd, "output_tokens": odd}, time=odd)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    found = read_results(path)[0]
    assert len(found.samples) == len(whole.samples)
    assert sum(sample.failed for sample in found.samples) == sum(sample.failed for sample in whole.samples) + 1


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), -1, "1", None, [], 10**400, 1e300])
def test_a_count_and_a_time_are_numbers(odd) -> None:
    assert read_count(odd) is None
    assert read_seconds(odd) is None
    assert (read_count(3.0), read_count(0), read_seconds(1.5)) == (3, 0, 1.5)


@pytest.mark.parametrize("odd", [0, [], float("nan"), {"a": 1}])
def test_a_reply_and_a_model_that_are_no_texts_are_left_out(odd, tmp_path) -> None:
    header, samples = _read_archive(LOG)
    document = {**header, "eval": {**header["eval"], "model": odd}, "samples": [*samples]}
    for sample in document["samples"]:
        sample.setdefault("output", {})["completion"] = odd
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    found = read_results(path)[0]
    assert found.model is None
    assert {sample.reply for sample in found.samples} == {None}


@pytest.mark.parametrize("field", ["metrics", "arguments"])
def test_a_number_instead_of_a_list_is_one_line(field, tmp_path) -> None:
    (whole,) = LOG.parent.glob("samples_headqa_en_2*.jsonl")
    path = tmp_path / whole.name
    lines = [json.loads(line) | {field: 5} for line in whole.read_text(encoding="utf-8").splitlines()]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(ResultsError, match="sample 1 is not in the format of lm-evaluation-harness"):
        read_results(path)


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_a_likelihood_that_is_none_is_a_sample_that_failed(odd, tmp_path) -> None:
    (whole,) = LOG.parent.glob("samples_headqa_en_2*.jsonl")
    path = tmp_path / whole.name
    lines = [json.loads(line) for line in whole.read_text(encoding="utf-8").splitlines()]
    lines[0]["filtered_resps"][0][0] = odd
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    for before, after in zip(read_results(whole), read_results(path), strict=True):
        assert after.score_unit == before.score_unit
        assert [sample.failed for sample in after.samples] == [True] + [False] * (len(lines) - 1)

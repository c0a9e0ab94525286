"""Numbers in the logs of others that are none: the sample is counted as one that failed, or the number is left out."""

import gzip
import json
from pathlib import Path

import pytest

from medexam_companions.harnesses import ResultsError, read_results

LOGS = Path(__file__).parent / "logs"
LM_EVAL = next(LOGS.glob("samples_headqa_en_2*.jsonl"))
ODD = [float("inf"), float("nan"), -1, 1.5, "two", [1], 10**400]


def _inspect(tmp_path, change):
    """What is read of the log after `change`."""
    log = json.loads(gzip.decompress((LOGS / "inspect_headqa.json.gz").read_bytes()))
    change(log)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    return read_results(path)[0]


def _lm_eval(tmp_path, change):
    lines = [json.loads(line) for line in LM_EVAL.read_text(encoding="utf-8").splitlines()]
    change(lines)
    path = tmp_path / LM_EVAL.name
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return read_results(path)


@pytest.mark.parametrize("odd", ODD)
def test_an_epoch_that_is_none_is_a_sample_that_failed_and_counts_are_left_out(odd, tmp_path) -> None:
    def change(log):
        log["samples"][0]["epoch"] = odd
        for sample in log["samples"][1:]:
            usage = {"input_tokens": odd, "output_tokens": odd}
            sample.setdefault("output", {}).update(usage=usage, time=odd)

    whole, found = _inspect(tmp_path, lambda log: None), _inspect(tmp_path, change)
    assert len(found.samples) == len(whole.samples)
    assert sum(sample.failed for sample in found.samples) == sum(sample.failed for sample in whole.samples) + 1
    assert {sample.prompt_tokens for sample in found.samples if not sample.failed} == {None}


def test_a_reply_and_a_model_that_are_no_texts_are_left_out(tmp_path) -> None:
    def change(log):
        log["eval"]["model"] = 0
        for sample, odd in zip(log["samples"], [[], float("nan"), {"a": 1}] * 10, strict=False):
            sample.setdefault("output", {})["completion"] = odd

    found = _inspect(tmp_path, change)
    assert (found.model, {sample.reply for sample in found.samples}) == (None, {None})


@pytest.mark.parametrize("field", ["metrics", "arguments"])
def test_a_number_instead_of_a_list_is_one_line(field, tmp_path) -> None:
    with pytest.raises(ResultsError, match="sample 1: is not in the format of lm-evaluation-harness"):
        _lm_eval(tmp_path, lambda lines: [line.update({field: 5}) for line in lines])


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_a_likelihood_that_is_none_is_a_sample_that_failed(odd, tmp_path) -> None:
    def change(lines):
        lines[0]["filtered_resps"][0][0] = odd

    for before, after in zip(read_results(LM_EVAL), _lm_eval(tmp_path, change), strict=True):
        assert after.score_unit == before.score_unit
        assert [sample.failed for sample in after.samples] == [True] + [False] * 19

"""Stored runs side by side: which questions are compared, what is said of them and when it must not, where it goes."""

import json
import re
import shutil

import pytest
from scipy.stats import binomtest

import medexam as package
from medexam.errors import DatasetError
from sealed_texts import check_sealed
from small_exams import write_exams

ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
REASONING, LONGEST = {"kind": "chain_of_thought"}, {"kind": "longest"}


def found(*runs) -> dict:
    """What `medexam compare --json` prints."""
    return json.loads(json.dumps(package.compare(*runs).document()))


@pytest.mark.parametrize("name", ["pair", "several"])
def test_what_is_shown_and_written(make_run, medexam, tmp_path, name) -> None:
    runs = [make_run(ZERO_SHOT, "rwwwowu"), make_run(REASONING, "urwrrro")]
    if name == "several":
        runs += [make_run(LONGEST, "uwr"), make_run(GUIDED, "rrrrrrrfrrrr"), make_run(GUIDED, "rrw", years=[2015])]
    compared = package.compare(*runs)
    check_sealed(f"compare/{name}.md", compared.markdown(), tmp_path)
    check_sealed(f"compare/{name}.txt", f"{compared!r}\n", tmp_path)
    if name == "pair":
        medexam("compare", *runs, "--latex", tmp_path / "pair.tex")
        check_sealed("compare/pair.tex", (tmp_path / "pair.tex").read_text(), tmp_path)


def test_a_pair_on_all_questions(make_run) -> None:
    document = found(make_run(ZERO_SHOT, "rwwww"), make_run(REASONING, "rrwwu"))
    assert (document["questions"], document["exams"], sum(document["dropped"].values())) == (20, 4, 0)
    (pair,) = document["pairs"]
    accuracy = pair["measures"]["accuracy"]
    difference = accuracy["difference"]
    flips = [accuracy["flips"][name] for name in ("right_to_wrong", "wrong_to_right", "both_right", "both_wrong")]
    assert (accuracy["baseline"], difference["value"], flips) == (0.2, pytest.approx(0.2), [0, 4, 4, 12])
    assert accuracy["p"] == accuracy["p_adjusted"] == pytest.approx(binomtest(4, 4).pvalue)
    # Every exam gains one question of five, so whole exams vary by nothing; four flips are too few for the test.
    assert difference["resampled"] == "questions within exams"
    assert difference["interval"] == pytest.approx([0.05, 0.4])
    assert pair["verdict"] == "not told apart"
    assert {name: group["n"] for groups in pair["by"].values() for name, group in groups.items()} == dict.fromkeys(
        ("biology", "medicine", "2013", "2015"), 10
    )
    assert [each["question"].rpartition("/")[2] for each in document["flipped"]] == ["2"] * 4
    assert [(each["gold"], list(each["answers"].values())) for each in document["flipped"]] == [(3, [1, 3])] * 4
    assert document["together"] == {"n": 20, "any_right": 8, "all_right": 4, "none_right": 12}


def test_only_questions_that_all_runs_scored_are_compared(make_run) -> None:
    runs = [make_run(ZERO_SHOT, "r", years=[2013]), make_run(GUIDED, "frmrr"), make_run(REASONING, "w", years=[2013])]
    document = found(*runs)
    dropped = {"not_in_every_run": 10, "failed": 2, "not_asked_yet": 2, "other_gold": 0}
    assert (document["questions"], document["dropped"]) == (6, dropped)
    assert [(run["asked"], run["owed"], run["metrics"]["n"]) for run in document["runs"]] == [
        (10, 0, 6),
        (20, 8, 6),
        (10, 0, 6),
    ]
    assert [pair["measures"]["accuracy"]["n"] for pair in document["pairs"]] == [6, 6]
    assert "Dropped: 10 not in every run, 2 failed in at least one, 2 not asked yet in at least one" in " ".join(
        repr(package.compare(*runs)).split()
    )


def test_the_first_run_is_the_baseline(make_run) -> None:
    better, worse = make_run(ZERO_SHOT, "r"), make_run(REASONING, "w")
    assert [found(*runs)["pairs"][0]["verdict"] for runs in ((better, worse), (worse, better))] == ["worse", "better"]
    assert (
        "chain_of_thought is worse than zero_shot in accuracy: 0.0 % against 100.0 %, -100.0 percentage points, "
        "McNemar's p < 0.001, no interval, because every resample has the same result."
    ) in package.compare(better, worse).markdown()


@pytest.mark.parametrize("outcomes", ["rw", "wr", "rrw", "wwr", "rwwwu", "wrrrrrrrrrrrrrrrrrrr"])
def test_better_is_never_said_of_an_interval_with_zero_or_a_p_that_shows_nothing(make_run, outcomes) -> None:
    runs = make_run(ZERO_SHOT, "rww"), make_run(REASONING, outcomes), make_run(GUIDED, "wrw")
    shown = []
    for pair in found(*runs)["pairs"]:
        accuracy = pair["measures"]["accuracy"]
        low, high = accuracy["difference"]["interval"]
        if pair["verdict"] != "not told apart":
            shown.append(pair)
            assert accuracy["p_adjusted"] < 0.05
            assert {"better": low > 0, "worse": high < 0}[pair["verdict"]]
        else:
            assert low <= 0 <= high or accuracy["p_adjusted"] >= 0.05
    said = f"{package.compare(*runs)!r} {package.compare(*runs).markdown()}"
    assert bool(re.search(r"\b(better|worse)\b", said)) == bool(shown)


def test_several_runs_are_adjusted_by_holm(make_run) -> None:
    runs = make_run(ZERO_SHOT, "w"), make_run(REASONING, "rwwww"), make_run(GUIDED, "rrwww")
    pairs = found(*runs)["pairs"]
    tested = [pair["measures"]["accuracy"] for pair in pairs]
    first, second = binomtest(4, 4).pvalue, binomtest(8, 8).pvalue
    assert [each["p"] for each in tested] == pytest.approx([first, second])
    assert [each["p_adjusted"] for each in tested] == pytest.approx([first, 2 * second])
    assert "after Holm" in package.compare(*runs).markdown()
    groups = [group for pair in pairs for group in pair["by"]["discipline"].values()]
    assert all(group["p_adjusted"] >= group["p"] for group in groups)
    smallest = min(groups, key=lambda group: group["p"])
    assert smallest["p_adjusted"] == pytest.approx(min(1, 4 * smallest["p"]))


def test_languages_may_be_compared_and_the_reader_is_told(make_run, exam_files) -> None:
    english = make_run(ZERO_SHOT, "rw")
    document = found(english, make_run(ZERO_SHOT, "r", language="es"))
    assert [run["name"] for run in document["runs"]] == ["zero_shot en", "zero_shot es"]
    assert "different languages (en, es)" in document["notes"][0]
    exams = json.loads((exam_files / "HEAD.json").read_text())
    exams["exams"]["Cuaderno_2013_1_B"]["data"][0]["ra"] = "1"
    (exam_files / "HEAD.json").write_text(json.dumps(exams))
    document = found(english, make_run(ZERO_SHOT, "r", language="es"))
    assert (document["questions"], document["dropped"]["other_gold"]) == (19, 1)


def test_data_that_differ_between_the_runs_are_noted(make_run, tmp_path) -> None:
    other = write_exams(tmp_path / "other", qtext="Which is it now?")
    document = found(make_run(ZERO_SHOT, "r"), make_run(REASONING, "r", path=other))
    assert "2 different versions of the data" in document["notes"][0]


def test_runs_are_called_by_what_tells_them_apart(make_run) -> None:
    def names(*runs) -> list[str]:
        return [run["name"] for run in found(*runs)["runs"]]

    first, second = make_run(ZERO_SHOT, "r", run_id="first"), make_run(ZERO_SHOT, "w", run_id="second")
    assert names(first, second) == ["first", "second"]
    assert names(first, make_run(REASONING, "w"), second) == ["first", "chain_of_thought", "second"]
    other = make_run(ZERO_SHOT, "w", run_id="third", model={"engine": "litellm", "name": "openai/gpt-4o"})
    assert names(first, other) == ["zero_shot SmolLM2-135M-Instruct", "zero_shot gpt-4o"]


def test_a_run_of_two_models_is_the_baseline_only_if_it_is_named_so(make_run, tmp_path) -> None:
    models = iter(["A"] * 15 + ["B"] * 5)
    mixed = make_run(REASONING, "r", run_id="a", model={"name": "A"}, extra=lambda _: {"model": next(models)})
    plain = make_run(ZERO_SHOT, "rw", run_id="b", model={"name": "A"})
    assert (found(tmp_path / "runs")["baseline"], found(mixed, plain)["baseline"]) == ("b", "a")
    assert "mixes models and is not ranked: A (15) + B (5)" in found(mixed, plain)["notes"][0]


def test_what_cannot_be_compared_is_refused(make_run, tmp_path) -> None:
    first = make_run(ZERO_SHOT, "r")
    for other, why in (
        (make_run(REASONING, "f"), r"no question is scored by both runs \(Dropped: 20 failed"),
        (make_run(REASONING, "m"), r"\(Dropped: 20 not asked yet"),
    ):
        with pytest.raises(DatasetError, match=why):
            package.compare(first, other)
    with pytest.raises(DatasetError, match=r"\(Dropped: 20 not in every run\)"):
        package.compare(make_run(ZERO_SHOT, "r", years=[2013]), make_run(ZERO_SHOT, "r", years=[2015]))
    other = shutil.copytree(first, tmp_path / "other")
    (other / "spec.json").write_text((first / "spec.json").read_text().replace('"headqa_v1"', '"headqa_v2"'))
    with pytest.raises(DatasetError, match=r"headqa_v1.* and headqa_v2.*; compare runs of one data set"):
        package.compare(first, other)

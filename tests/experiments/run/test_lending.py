"""Answers of an equal digest and model are not paid for twice, and a model that is swapped meanwhile is seen."""

import asyncio

import dspy
import pytest
from wire_server import serving

import medexam
from command_line import medexam as command  # noqa: F401
from dspy_examples import build_devset
from hash_server import HashServer
from medexam.errors import RunFolderError


def test_a_run_of_another_name_lends_its_answers(ask, spec, asked, tmp_path) -> None:
    (first,) = ask(spec)
    asked.take()
    wider = spec | {"name": "wider", "dataset": {"name": "headqa_sample", "limit": 30}}
    (cell,) = medexam.plan(wider, runs_dir=tmp_path / "runs").cells
    assert (cell["owed"], cell["questions"]) == (18, 30)
    (run,) = ask(wider)
    assert (len(asked.take()), run.n, run.id == first.id) == (18, 30, False)
    assert first.predictions.items() <= run.predictions.items()
    ask([spec, wider], program="chain_of_thought")
    assert len(asked.take()) == 30
    (whole,) = ask(spec | {"name": "same"})
    assert (asked.take(), whole.metrics) == ([], first.metrics)
    (fresh,) = ask(spec | {"name": "anew"}, fresh=True, limit=5)
    assert (len(asked.take()), fresh.n) == (5, 5)
    (wider,) = ask(spec | {"name": "anew"})
    assert (wider.id, len(asked.take()), wider.n) == (fresh.id, 7, 12)
    pair = ask([spec | {"name": name, "program": "few_shot"} for name in ("one", "two")])
    assert (len(asked.take()), [run.n for run in pair]) == (12, [12, 12])


def test_each_selection_and_each_reading_of_a_matrix_keeps_a_run_of_its_own(
    ask, spec, asked, replies, tmp_path
) -> None:
    spec["model"] = replies("The answer is 2.")
    for new in (12, 0):
        ask(spec, dataset__limit=[5, 12], program__reading=["strict", "lenient"])
        found = {(run.n, run.metrics.unanswered) for run in medexam.list_runs(tmp_path / "runs")}
        assert (len(asked.take()), found) == (new, {(5, 0), (5, 5), (12, 0), (12, 12)})


def test_failures_are_not_lent(ask, spec, asked, replies) -> None:
    stem = medexam.load_questions("headqa_sample", limit=12)[3].stem
    answer, fault = "{Answer: 1}", {"error": "server"}
    (first,) = ask(spec | {"model": replies({stem[:40]: [fault, answer], "*": answer}, "once")})
    asked.take()
    (run,) = ask(spec | {"name": "other", "model": replies({stem[:40]: [answer], "*": answer}, "once")})
    assert (first.metrics.failed, len(asked.take()), run.n) == (1, 1, 12)


@pytest.fixture
def served(ask, spec):
    """`served(wire, name="other")` -> a run of the spec on a server that answers so."""

    def run(wire, name="served", **settings):
        with serving(wire):
            model = {"engine": "vllm", "endpoints": [wire.address]}
            return ask(spec | {"model": model, "name": name}, **settings)[0]

    return run


def test_another_models_answers_are_not_lent(served, capsys) -> None:
    first = served(HashServer())
    same, drifted = served(HashServer(), name="same"), HashServer(drift=1.0)
    assert same.predictions == first.predictions
    other = served(drifted, name="another", dataset__limit=13)
    wider = served(HashServer(), dataset__limit=13)
    assert (other.stored.mixed or wider.stored.mixed, wider.n, len(drifted.prompts) >= 13) == (False, 13, True)
    assert "another model gave them" in capsys.readouterr().err


def swapping(at):
    """A server whose model is another one once it was asked `at` questions."""

    class Swapping(HashServer):
        def reply(self, path, body):
            self.drift = 1.0 if len(self.prompts) >= at else 0.0
            return super().reply(path, body)

    return Swapping()


def test_a_model_that_is_swapped_meanwhile_is_counted_where_the_score_stands(served, capsys) -> None:
    run = served(swapping(7))
    assert "another model answers now than at the start" in capsys.readouterr().err
    assert (run.stored.mixed, run.stored.answerers[0].doubtful, run.n) == (True, 12, 12)
    assert "12 in doubt" in (run.folder / "report.md").read_text()
    assert not served(swapping(1000), fresh=True).stored.mixed


def test_an_evaluation_looks_which_model_answers(tmp_path) -> None:
    def evaluate(wire, size):
        with serving(wire), dspy.context(lm=(lm := medexam.lm("vllm", endpoints=wire.address))):
            evaluation = medexam.Evaluate(
                devset=build_devset(size), metric=lambda *_: 1.0, runs_dir=tmp_path, track=False
            )
            try:
                return evaluation(dspy.Predict("question -> answer"))
            finally:
                asyncio.run(lm.live_engine.aclose())

    assert evaluate(HashServer(), 6).n == 6
    with pytest.raises(RunFolderError, match="fresh=True"):
        evaluate(HashServer(drift=1.0), 16)
    assert evaluate(HashServer(), 16).n == 16


def test_equal_runs_whose_answers_differ_are_named(served, command, capsys, tmp_path) -> None:  # noqa: F811
    class Other(HashServer):
        def _text(self, prompt, body):
            return super()._text(f"another {prompt}", body)

    first = served(HashServer())
    capsys.readouterr()
    served(HashServer(), fresh=True, repeat=1)
    assert "are the same" not in capsys.readouterr().err
    second = served(Other(), fresh=True)
    said = f"the runs {first.id} and {second.id} say that they are the same, and "
    assert said in capsys.readouterr().err
    (note,) = [note for note in medexam.compare(first, second).document()["notes"] if said in note]
    assert note.endswith("of 12 answers differ: two servers may stand behind one name")
    assert said in command("list", "--runs-dir", tmp_path / "runs")[2]


@pytest.mark.parametrize("swapped", [False, True])
def test_an_evaluation_of_a_dspy_lm_looks_too(tmp_path, swapped) -> None:
    class Renaming(HashServer):
        def reply(self, path, body):
            status, reply = super().reply(path, body)
            return status, reply | {"model": "tiny-2" if swapped and self.prompts else "tiny-1"}

    with serving(wire := Renaming()):
        lm = dspy.LM("openai/tiny", api_base=wire.address, api_key="x", cache=False, num_retries=0)
        with dspy.context(lm=lm):
            evaluate = medexam.Evaluate(devset=build_devset(6), metric=lambda *_: 1.0, runs_dir=tmp_path, track=False)
            (counted,) = evaluate(dspy.Predict("question -> answer")).run.stored.answerers
    assert (counted.answers, counted.doubtful) == (6, 6 * swapped)

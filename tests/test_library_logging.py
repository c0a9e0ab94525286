"""What libraries say is held back while our own bar and counts stand in its place."""

import dspy
import tqdm

from medexam.library_logging import quiet_dspy


def _ask_two_at_once() -> None:
    answer = dspy.Example(question="?").with_inputs("question")
    dspy.Parallel(num_threads=2)([(lambda question: question, answer)] * 2)


def test_a_module_that_asks_in_threads_shows_no_bar_of_its_own(capfd) -> None:
    with quiet_dspy():
        _ask_two_at_once()
    assert capfd.readouterr() == ("", "")
    assert dspy.utils.parallelizer.tqdm is tqdm


def test_outside_a_run_its_bar_is_as_ever(capfd) -> None:
    _ask_two_at_once()
    assert "2 / 2" in "".join(capfd.readouterr())

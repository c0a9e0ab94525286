"""Token boundaries, trees and costs of continuations, on real questions and two families of tokenizers."""

from dataclasses import replace
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from medexam.datasets import load_exam_set
from medexam.errors import InvalidRequestError, LogprobsUnavailableError
from medexam.serve import smollm2_folder, split_tokens
from medexam.serve.logprobs.tokens import Candidates, ReadMethods, build_logprobs, group_forks
from medexam.serve.logprobs.vllm import read_walk
from medexam.specs import DatasetSpec

QUESTIONS = [
    q
    for language in ("en", "es")
    for q in load_exam_set(DatasetSpec(name="headqa_sample", language=language)).questions
]
ALL = frozenset({"echo", "trie", "label"})


def sentencepiece_like() -> Tokenizer:
    """A unigram model over words that carry their space, with a BOS, as Llama 2 and Mistral have."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=2_000, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator([q.stem for q in QUESTIONS] + [o.text for q in QUESTIONS for o in q.options], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def byte_level() -> Tokenizer:
    return Tokenizer.from_file(str(smollm2_folder() / "tokenizer.json"))


@pytest.mark.parametrize("family", [byte_level, sentencepiece_like])
def test_every_option_of_the_sample_is_what_the_model_reads(family) -> None:
    tokenizer = family()
    for question in QUESTIONS:
        for prompt, lead in (
            (f"Question: {question.stem}\nAnswer:", " "),
            (question.stem, " "),
            ("user\nHi\nassistant\n", ""),
        ):
            wholes = [prompt + lead + option.text for option in question.options]
            opening, *encoded = [tokenizer.encode(text).ids for text in [prompt, *wholes]]
            found = split_tokens(opening, encoded)
            assert [list(found.prompt + path) for path in found.paths] == encoded
            # Only a token that spans the boundary may move into the continuations.
            assert len(opening) - len(found.prompt) <= 1
            assert found.prompt.count(1) == (1 if family is sentencepiece_like else found.prompt.count(1))
            for path, option in zip(found.paths, question.options, strict=True):
                assert (
                    tokenizer.decode(list(path))
                    .strip()
                    .endswith(tokenizer.decode(tokenizer.encode(option.text, add_special_tokens=False).ids).strip())
                )


def test_a_token_that_spans_the_boundary_belongs_to_every_continuation() -> None:
    # The prompt alone ends in token 3; with the second continuation it merges into token 9.
    found = split_tokens([1, 2, 3], [[1, 2, 3, 4], [1, 2, 9]])
    assert found.prompt == (1, 2)
    assert found.paths == ((3, 4), (9,))


def test_what_continuations_begin_with_can_count_as_given() -> None:
    whole = [[1, 5, 7], [1, 5, 8]]
    assert split_tokens([1], whole).paths == ((5, 7), (5, 8))
    given = split_tokens([1], whole, given_opening=True)
    assert given.prompt == (1, 5)
    assert given.are_single_tokens


@pytest.mark.parametrize("whole", [[[1, 2]], [[1, 2, 3], [1, 2]]])
def test_a_continuation_without_tokens_is_refused(whole) -> None:
    with pytest.raises(InvalidRequestError, match="no token of its own"):
        split_tokens([1, 2], whole)


def test_nothing_before_the_continuations_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no text before"):
        split_tokens([], [[1], [2]])


def test_one_option_may_begin_another_and_two_may_be_equal() -> None:
    found = Candidates((0,), ((1,), (1, 2), (1, 2), (3,)))
    assert found.forks == {(): (1, 3), (1,): (2,)}
    spelled = found.spell({(): {1: -0.5, 3: -2.0}, (1,): {2: -0.25}})
    assert spelled == [[-0.5], [-0.5, -0.25], [-0.5, -0.25], [-2.0]]


def test_the_cheapest_way_depends_on_the_length_of_the_prompt() -> None:
    paths = tuple((option, *range(100, 109)) for option in range(5))
    offer = ReadMethods(ALL, block=32)
    assert offer.choose(Candidates(tuple(range(69)), paths), "auto")[0] == "echo"
    assert offer.choose(Candidates(tuple(range(420)), paths), "auto")[0] == "trie"
    assert offer.choose(Candidates(tuple(range(420)), tuple((option,) for option in range(5))), "auto")[0] == "label"


def test_computed_tokens() -> None:
    candidates = Candidates(tuple(range(40)), ((1, 2), (3, 4)))
    assert ReadMethods(ALL, block=32).computed(candidates, "echo") == 84
    assert ReadMethods(ALL, block=32).computed(candidates, "trie") == 40 + 9 + 9
    assert ReadMethods(ALL, block=None).computed(candidates, "trie") == 40 + 41 + 41
    assert ReadMethods(ALL, block=0).computed(candidates, "trie") == 42


def test_walks_are_for_prompts_of_which_much_is_computed_anew() -> None:
    paths = tuple((option, *range(100, 109)) for option in range(5))
    offer = ReadMethods(ALL, block=32, walkable=True)
    little, much = Candidates(tuple(range(416)), paths), Candidates(tuple(range(446)), paths)
    assert [offer.walks(candidates) for candidates in (little, much)] == [False, True]
    assert not replace(offer, walkable=False).walks(much)
    assert not offer.walks(Candidates(tuple(range(446)), ((1,), (2,))))
    assert offer.cost(much, "trie") < replace(offer, walkable=False).cost(much, "trie")


def reply(*steps: tuple[int, dict[int, float]]) -> dict[str, Any]:
    """A completion's choice: at each step the token that was written, and the log-probabilities that were named."""
    named = [{f"token_id:{token}": value for token, value in values.items()} for _, values in steps]
    return {"logprobs": {"tokens": [f"token_id:{written}" for written, _ in steps], "top_logprobs": named}}


def test_a_walk_is_believed_as_far_as_the_server_wrote_the_continuation() -> None:
    here, astray = {5: -1.0, 6: -2.0, 7: -3.0}, {5: -9.0, 6: -9.0, 7: -9.0}
    assert read_walk(reply((5, here), (6, here), (7, here)), (1,), (5, 6, 7), "trie") == [-1.0, -2.0, -3.0]
    assert read_walk(reply((5, here), (7, here), (7, astray)), (1,), (5, 6, 7), "trie") == [-1.0, -2.0]
    assert read_walk(reply((6, here), (6, astray), (7, astray)), (1,), (5, 6, 7), "trie") == [-1.0]
    assert read_walk(reply((5, here)), (1,), (5, 6, 7), "trie") == [-1.0]
    for wrong in (reply((5, {6: -1.0})), reply(), {"logprobs": None}):
        with pytest.raises(LogprobsUnavailableError):
            read_walk(wrong, (1,), (5, 6, 7), "trie")


@pytest.mark.parametrize(
    ("ways", "asked", "message"),
    [
        (frozenset({"echo"}), "trie", "does not honour"),
        (ALL, "label", "several tokens"),
        (frozenset({"label"}), "auto", "offers no way"),
    ],
)
def test_a_way_that_is_not_offered_is_refused(ways, asked, message) -> None:
    with pytest.raises(LogprobsUnavailableError, match=message):
        ReadMethods(ways, block=16).choose(Candidates((0,), ((1, 2), (3,))), asked)


@pytest.mark.parametrize(
    ("values", "came"),
    [
        ([[-1.0], [-2.0]], "1 numbers"),
        ([[-1.0, float("nan")], [-2.0]], "nan"),
        ([[-1.0, float("-inf")], [-2.0]], "-inf"),
        ([[-1.0, 0.5], [-2.0]], "0.5"),
        ([[-1.0, -1.0], [-1.0]], "-1.0 for all of them"),
    ],
)
def test_numbers_that_cannot_be_right_are_refused(values, came) -> None:
    with pytest.raises(LogprobsUnavailableError, match=came):
        build_logprobs(Candidates((0,), ((1, 2), (3,))), values, "trie", "", 1)


def test_sums_are_exact_and_the_mass_is_that_of_single_tokens() -> None:
    reading = build_logprobs(Candidates((0,), ((1, 2), (3,))), [[-1e-9, -1.0], [-2.0]], "trie", "", 1)
    assert reading.continuations[0].total == -1.000000001
    assert reading.mass is None
    labels = build_logprobs(Candidates((0,), ((1,), (3,))), [[-1.0], [-2.0]], "label", "", 1)
    assert labels.mass == pytest.approx(0.3678794 + 0.1353353)


def test_forks_travel_together_up_to_the_number_of_tokens_that_may_be_named() -> None:
    forks = [((1,), (5, 6)), ((2,), (6, 7)), ((3,), (8,)), ((4,), (9, 10, 11, 12))]
    assert group_forks(forks, 3) == [([(1,), (2,)], [5, 6, 7]), ([(3,)], [8]), ([(4,)], [9, 10, 11, 12])]

"""Token boundaries of continuations, on real questions and two families of tokenizers, and the numbers behind them."""

import pytest
from engine_calls import ask, reply_blocking
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from medexam.datasets import load_exam_set
from medexam.errors import InvalidRequestError, LogprobsUnavailableError
from medexam.model_calls import ContinuationLogprobs, ContinuationRequest
from medexam.serve import ScriptedEngine, smollm2_folder, split_tokens
from medexam.specs import DatasetSpec
from table_cases import read_table

QUESTIONS = [
    q
    for language in ("en", "es")
    for q in load_exam_set(DatasetSpec(name="headqa_sample", language=language, limit=40)).questions
]


def sentencepiece_like() -> Tokenizer:
    """A unigram model over words that carry their space, with a BOS, as Llama 2 and Mistral have."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=1_000, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False
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
        for prompt, lead in ((f"Question: {question.stem}\nAnswer:", " "), ("user\nHi\nassistant\n", "")):
            wholes = [prompt + lead + option.text for option in question.options]
            opening, *encoded = [tokenizer.encode(text).ids for text in [prompt, *wholes]]
            found = split_tokens(opening, encoded)
            assert [list(found.prompt + path) for path in found.paths] == encoded
            # Only a token that spans the boundary may move into the continuations.
            assert len(opening) - len(found.prompt) <= 1
            for path, option in zip(found.paths, question.options, strict=True):
                alone = tokenizer.decode(tokenizer.encode(option.text, add_special_tokens=False).ids)
                assert tokenizer.decode(list(path)).strip().endswith(alone.strip())


@pytest.mark.parametrize(*read_table("beginnings"))
def test_where_continuations_begin(prompt, whole, given, read, paths) -> None:
    found = split_tokens(prompt, whole, given_opening=given)
    assert [list(found.prompt), [*map(list, found.paths)]] == [read, paths]


def test_one_option_may_begin_another_and_two_may_be_equal() -> None:
    found = split_tokens([0], [[0, 1], [0, 1, 2], [0, 1, 2], [0, 3]])
    assert found.forks == {(): (1, 3), (1,): (2,)}


@pytest.mark.parametrize(*read_table("refused_continuations"))
def test_what_has_no_continuation_is_refused(prompt, whole, said) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        split_tokens(prompt, whole)


def read(logprobs: list[list[float]], texts: tuple[str, ...]) -> ContinuationLogprobs:
    """What an engine makes of these log-probabilities."""
    engine = ScriptedEngine({"*": {"logprobs": logprobs}})
    found = reply_blocking(engine, ask(more={"continuations": ContinuationRequest(texts=texts)})).logprobs
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("values", "came"),
    [
        ([[-1.0, float("nan")], [-2.0]], "nan"),
        ([[-1.0, float("-inf")], [-2.0]], "-inf"),
        ([[-1.0, 0.5], [-2.0]], "0.5"),
        ([[-1.0, -1.0], [-1.0]], "-1.0 for all of them"),
    ],
)
def test_numbers_that_cannot_be_right_are_refused(values, came) -> None:
    with pytest.raises(LogprobsUnavailableError, match=came):
        read(values, (" the heart", " liver"))


def test_sums_are_exact_and_the_mass_is_that_of_single_tokens() -> None:
    reading = read([[-1e-9, -1.0], [-2.0]], (" the heart", " liver"))
    assert reading.continuations[0].total == -1.000000001
    assert reading.mass is None
    labels = read([[-1.0], [-2.0]], (" 1", " 2"))
    assert labels.mass == pytest.approx(0.3678794 + 0.1353353)
    with pytest.raises(LogprobsUnavailableError, match="no logprobs"):
        reply_blocking(ScriptedEngine({"*": "1"}), ask(more={"continuations": ContinuationRequest(texts=("a", "b"))}))

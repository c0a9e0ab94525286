"""CasiMedicos-Arg: two real documents a language, every trap of the files by hand, and the counts of the whole."""

import io
import lzma
import os
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from task_data import rows_in

from medexam.errors import DatasetError
from medexam.questions import Component
from medexam_companions.casimedicos import read_casimedicos

rows = rows_in(Path(__file__).with_name("cases.jsonl"))
"""What is to be read, and what is read out of it."""

SAMPLE = Path(__file__).parent / "sample"
LANGUAGES = ["en", "es", "fr", "it"]
ARCHIVE = "casimedicos-arg.tar.gz"

PLAIN = [
    "QUESTION TYPE: DIGESTIVE",
    "CLINICAL CASE:",
    "A 47-year-old man coughs.",
    "What is it?",
    "1- Asthma.",
    "2- Flu.",
    "3- A cold.",
    "4- Croup.",
    "5- nan",
    "CORRECT ANSWER: 3",
    "It is a cold.",
    "Nothing else fits.",
]


def _lines(sentences: list[str], end: str = "\n") -> str:
    """IOB2 lines; a token such as `Flu./B-Claim` carries its label, others carry O."""
    return "".join(
        "".join(f"{word.split('/B-')[0].split('/I-')[0]} {_label(word)}{end}" for word in sentence.split(" ")) + end
        for sentence in sentences
    )


def _label(word: str) -> str:
    return next((mark[1:] + word.split(mark)[1] for mark in ("/B-", "/I-") if mark in word), "O")


@pytest.fixture
def read(tmp_path):
    """`read(sentences)` -> the documents of an English dev file that holds them."""

    def make(*sentences: str, text: str | None = None):
        (tmp_path / "EN").mkdir(exist_ok=True)
        (tmp_path / "EN" / "dev.tsv").write_bytes((text or _lines(list(sentences))).encode())
        return read_casimedicos(tmp_path, "en", ["dev"])

    return make


@pytest.fixture
def read_one(read):
    """`read_one(place, *sentences)`: the plain document with sentences in place of the one that begins with `place`."""

    def make(place: str, *sentences: str):
        at = next(number for number, each in enumerate(PLAIN) if each.startswith(place))
        (document,) = read(*PLAIN[:at], *sentences, *PLAIN[at + 1 :])
        return document

    return make


# real documents


@pytest.mark.parametrize(("language", "specialties", "options", "question", "end"), rows("real"))
def test_the_real_sample(language, specialties, options, question, end) -> None:
    dev, test = read_casimedicos(SAMPLE, language, ("dev", "test"))
    assert [(each.key, each.split, each.language) for each in (dev, test)] == [
        ("casimedicos/dev/0", "dev", language),
        ("casimedicos/test/0", "test", language),
    ]
    assert [dev.specialty, test.specialty] == specialties
    assert [(len(each.options), each.correct) for each in (dev, test)] == [(4, 1), (5, 2)]
    assert test.options[test.correct - 1] == options
    assert dev.question == question
    assert dev.case.endswith("25 rpm.")
    assert dev.explanation.endswith(end)


# traps


def test_a_plain_document(read) -> None:
    (document,) = read(*PLAIN)
    assert document.specialty == "DIGESTIVE"
    assert document.case == "A 47-year-old man coughs."
    assert document.question == "What is it?"
    assert document.options == ("Asthma.", "Flu.", "A cold.", "Croup.")
    assert (document.correct, document.explanation) == (3, "It is a cold. Nothing else fits.")
    assert document.components == ()
    assert hash(document) == hash(replace(document))


def test_documents_are_told_apart_by_their_headings_alone(read) -> None:
    labelled = ["QUESTION/B-Claim TYPE:/I-Claim DIGESTIVE/I-Claim", *PLAIN[1:]]
    found = read(*PLAIN, *labelled, *PLAIN)
    assert [each.key for each in found] == [f"casimedicos/dev/{place}" for place in range(3)]
    assert [replace(each, key="") for each in found] == [replace(found[0], key="")] * 3


@pytest.mark.parametrize(
    "text",
    [
        _lines(PLAIN, "\r\n"),
        "\ufeff" + _lines(PLAIN),
        _lines(PLAIN).replace(" O\n", "\tO\t\t\n"),
        _lines(PLAIN).replace(" O\n", " O \n"),
        _lines(PLAIN).replace(" O\n", " O HighQualityHighQuality\n"),
        _lines(PLAIN).replace(" O\n", "\tO\tLowQuality\tcorrected\n"),
        "\n\n" + _lines(PLAIN).replace("\n\n", "\n \n\n\n"),
        _lines(PLAIN).rstrip("\n"),
    ],
    ids=["CRLF", "byte order mark", "tabs", "trailing space", "quality", "comment", "more blank lines", "no last end"],
)
def test_lines_of_every_form(read, text) -> None:
    assert read(text=text) == read(*PLAIN)


@pytest.mark.parametrize(("begins", "sentence"), rows("headings"))
def test_headings_of_every_form(read, read_one, begins, sentence) -> None:
    assert (read_one(begins, sentence),) == read(*PLAIN)


@pytest.mark.parametrize("mark", ["2 - Flu.", "2-Flu.", "2 Flu.", "2 -Flu."])
def test_broken_option_marks(read, read_one, mark) -> None:
    (plain,) = read(*PLAIN)
    assert read_one("2-", mark) == plain


@pytest.mark.parametrize(("sentence", "case"), rows("case lines"))
def test_a_numbered_line_of_the_case_is_no_option(read_one, sentence, case) -> None:
    document = read_one("A 47", sentence)
    assert (document.case, document.options[0]) == (case, "Asthma.")


def test_an_option_of_two_sentences(read_one) -> None:
    document = read_one("2-", "2- Flu.", "4-fold more than usual.")
    assert document.options[1] == "Flu. 4-fold more than usual."


def test_a_case_and_its_question_in_one_sentence(read_one) -> None:
    document = read_one("A 47")
    assert (document.case, document.question) == ("", "What is it?")


@pytest.mark.parametrize(("sentence", "found"), rows("labels"))
def test_labels(read_one, sentence, found) -> None:
    document = read_one("It is", sentence)
    assert document.components == tuple(Component(*each) for each in found)


def test_no_component_crosses_sentences_or_stands_elsewhere(read) -> None:
    sentences = [each.replace("2- Flu.", "2-/B-Claim Flu./I-Claim") for each in PLAIN[:-2]]
    (document,) = read(*sentences, "It/B-Claim is./I-Claim", "So/I-Claim be it.")
    assert document.components == (Component("claim", 0, 6), Component("claim", 7, 9))


def test_decomposed_accents_are_composed(read_one) -> None:
    assert read_one("It is", "Razo\u0301n.").explanation.startswith("Razón. ")


@pytest.mark.parametrize(("begins", "sentences", "message"), rows("faults"))
def test_what_cannot_be_read_is_named(read_one, begins, sentences, message) -> None:
    with pytest.raises(DatasetError) as raised:
        read_one(begins, *sentences)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [(PLAIN[:-2], "has no explanation"), ([*PLAIN[:2], *PLAIN[4:]], "has no question"), ([""], "holds no document")],
)
def test_what_is_missing_is_named(read, sentences, message) -> None:
    with pytest.raises(DatasetError, match=message):
        read(*sentences, text="\n" if sentences == [""] else None)


# archives and folders


def _archive(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_archive_and_folders_are_read_alike(tmp_path) -> None:
    expected = read_casimedicos(SAMPLE, "fr", ("dev", "test"))
    files = {
        f"casimedicos-arg/FR/{split}.tsv": (SAMPLE / "FR" / f"{split}.tsv").read_bytes() for split in ("dev", "test")
    }
    archive = _archive(tmp_path / ARCHIVE, files)
    assert read_casimedicos(archive, "fr", ("dev", "test")) == expected
    assert [each.name for each in tmp_path.iterdir()] == [ARCHIVE]


def test_files_that_cannot_be_read_are_named(tmp_path) -> None:
    whole = _archive(tmp_path / ARCHIVE, {"EN/dev.tsv": (SAMPLE / "EN" / "dev.tsv").read_bytes()}).read_bytes()
    for content in (b"", b"no", whole[: len(whole) // 2], lzma.compress(bytes(1 << 20))[:-99]):
        (tmp_path / ARCHIVE).write_bytes(content)
        with pytest.raises(DatasetError, match="is not a complete tar"):
            read_casimedicos(tmp_path / ARCHIVE, "en", ["dev"])
    with pytest.raises(DatasetError, match=r"train\.tsv: cannot be read"):
        read_casimedicos(SAMPLE, "en")
    (tmp_path / "EN").mkdir()
    (tmp_path / "EN" / "dev.tsv").write_bytes("señal O\n".encode("latin-1"))
    with pytest.raises(DatasetError, match=r"dev\.tsv: cannot be read .*utf-8"):
        read_casimedicos(tmp_path, "en", ["dev"])


# the whole data


@pytest.fixture(scope="module")
def whole():
    """Language -> its documents by key."""
    root = os.environ.get("MEDEXAM_DATA")
    if not root:
        pytest.skip("MEDEXAM_DATA does not name a folder with the full data sets")
    found = {language: read_casimedicos(Path(root) / "casimedicos" / ARCHIVE, language) for language in LANGUAGES}
    return {language: {each.key: each for each in documents} for language, documents in found.items()}


def by_split(chosen) -> tuple[int, ...]:
    counts = Counter(each.split for each in chosen)
    return tuple(counts[split] for split in ("train", "dev", "test"))


@pytest.mark.data
@pytest.mark.parametrize(("language", "distinct", "specialties", "claims", "premises"), rows("counts"))
def test_the_counts_of_each_language(whole, language, distinct, specialties, claims, premises) -> None:
    spanish, documents = list(whole["es"].values()), list(whole[language].values())
    assert by_split(documents) == (381, 55, 117)
    assert by_split(each for each in documents if len(each.options) == 4) == (207, 30, 61)
    assert by_split(each for each in documents if len(each.options) == 5) == (174, 25, 56)
    assert by_split(each for each in documents if not each.case) == (30, 2, 6)
    assert Counter(each.correct for each in documents) == {1: 112, 2: 114, 3: 153, 4: 114, 5: 60}
    assert len({frozenset(map(str.casefold, each.options)) for each in documents}) == distinct
    assert len({each.specialty for each in documents}) == specialties
    components = Counter(part.label for each in documents for part in each.components)
    assert components == {"claim": claims, "premise": premises}
    aligned = [(each.key, each.correct, len(each.options)) for each in documents]
    assert aligned == [(each.key, each.correct, len(each.options)) for each in spanish]
    for each, key in zip(read_casimedicos(SAMPLE, language, ("dev", "test")), ("dev/33", "test/11"), strict=True):
        assert replace(each, key=f"casimedicos/{key}") == whole[language][f"casimedicos/{key}"]

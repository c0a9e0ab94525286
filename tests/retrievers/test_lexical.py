"""BM25 beside bm25s called directly, with real questions as queries."""

import re
import unicodedata
from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.retrievers import BM25Retriever, Passage, build_corpus, load_corpus
from medexam.specs import DatasetSpec

SAMPLE = Path(__file__).parent / "corpus_sample"


@pytest.fixture(scope="module")
def corpus():
    return load_corpus(SAMPLE)


@pytest.fixture(scope="module")
def queries() -> list[str]:
    """The stems of the 120 English questions that ship in the package."""
    return [question.stem for question in load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions]


@pytest.fixture(scope="module")
def spanish():
    """The Spanish questions of the package, each as a passage."""
    questions = load_exam_set(DatasetSpec(name="headqa_sample", language="es")).questions
    return build_corpus("es", [Passage(q.key, "", q.stem, "headqa") for q in questions], source="sample")


def _summary(found) -> list[list[tuple[str, float, int]]]:
    return [[(hit.passage.id, hit.score, hit.rank) for hit in hits] for hits in found]


def _words(text: str) -> list[str]:
    """The English words of a text, by hand: no stop words, and of single characters only letters and digits."""
    from bm25s.stopwords import STOPWORDS_EN

    kept = []
    for word in re.finditer(r"\w+", text):
        before, after = text[: word.start()], text[word.end() :]
        article = word[0] == "A" and re.search(r"(^|[.!?:\n])[^\w\n]*$", before) and re.match(r"\s+\w", after)
        stopped = article if word[0] == "A" else word[0].lower() in STOPWORDS_EN
        possessive = len(word[0]) == 1 and re.search(r"\w['\u2019]$", before)
        if not (stopped or possessive or word[0] == "_"):
            kept.append(word[0].lower())
    return kept


def test_bm25_ranks_as_bm25s_does(corpus, queries) -> None:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25()
    index.index([stemmer.stemWords(_words(passage.text)) for passage in corpus.passages], show_progress=False)
    tokens = [stemmer.stemWords(_words(query)) for query in queries]
    expected, scores = index.retrieve(tokens, k=10, show_progress=False)
    found = BM25Retriever(corpus, "en").search(queries, 10)
    assert sum(map(len, found)) > 900
    for hits, positions, values in zip(found, expected, scores, strict=True):
        kept = values > 0
        assert [hit.score for hit in hits] == values[kept].tolist()
        order = sorted(zip(-values[kept], positions[kept], strict=True))
        last = -order[-1][0] if order else 0
        # among those that tie with the last, bm25s may have taken others
        ours = [hit.passage.id for hit in hits if hit.score > last]
        assert ours == [corpus.passages[position].id for value, position in order if -value > last]


def test_hits_are_ranked_from_1_and_a_smaller_k_is_a_prefix(corpus, queries) -> None:
    retriever = BM25Retriever(corpus, "en")
    deep = retriever.search(queries, len(corpus.passages))
    for k in (1, 7, 50):
        assert retriever.search(queries, k) == [hits[:k] for hits in deep]
    assert all([hit.rank for hit in hits] == list(range(1, len(hits) + 1)) for hits in deep)
    assert retriever.search(queries[:1], 5)[0] == retriever.search(queries, 5)[0]


def test_equal_scores_stand_in_the_order_of_the_corpus(corpus) -> None:
    leukemia, other = corpus.passages[0], corpus.passages[-1]
    copies = [Passage(key, leukemia.title, leukemia.content, "copy") for key in "dbaec"]
    twins = build_corpus("twins", [other, *copies], source="sample")
    retriever = BM25Retriever(twins, "en")
    for k in (1, 3, 5):
        assert [hit.passage.id for hit in retriever.search([leukemia.title], k)[0]] == list("dbaec")[:k]


def test_a_query_without_a_known_word_finds_nothing(corpus) -> None:
    assert BM25Retriever(corpus, "en").search(["qwxyz", "", "the of and", "?"], 3) == [[], [], [], []]
    assert BM25Retriever(corpus, "en").search([], 3) == []
    for k in (0, 201):
        with pytest.raises(ValueError, match=f"k is {k}: it must be from 1 to the 200 passages"):
            BM25Retriever(corpus, "en").search(["leukemia"], k)
    empty = build_corpus("empty", [Passage("a", "", "the of and", "s")], source="here")
    with pytest.raises(DatasetError, match="corpus empty has only stop words"):
        BM25Retriever(empty, "en").search(["the"], 1)


def test_spanish_stems_and_stop_words(spanish) -> None:
    query = spanish.passages[0].content
    assert BM25Retriever(spanish, "es").search([query], 1)[0][0].passage == spanish.passages[0]
    assert BM25Retriever(spanish, "es").search(["el de la y los"], 5) == [[]]
    singular, plural = BM25Retriever(spanish, "es").search(["paciente", "pacientes"], 120)
    assert singular == plural
    assert sum(re.search(r"\bpacientes?\b", hit.passage.content.lower()) is not None for hit in plural) >= 12


@pytest.mark.parametrize(
    ("language", "singular", "plural", "stop_words"),
    [
        ("gl", "infección pulmonar doente cirúrxica", "infeccións pulmonares doentes cirúrxicas", "o da unha co á e"),
        ("it", "infezione cronica paziente", "infezioni croniche pazienti", "l' della una con e è"),
        ("ru", "инфекция лёгочная больной", "инфекции лёгочные больные", "и в не на"),
    ],
)
def test_other_languages_have_stems_and_stop_words(language, singular, plural, stop_words) -> None:
    texts = [*singular.split(), stop_words]
    passages = build_corpus(language, [Passage(text, "", text, "s") for text in texts], source="here")
    bm25 = BM25Retriever(passages, language)
    found = [[hit.passage.id for hit in hits] for hits in bm25.search(plural.split(), 2)]
    assert found == [[word] for word in singular.split()]
    assert bm25.search([stop_words], 2) == [[]]


LETTERS = {
    "en": [
        *("Vitamin A deficiency blinds.", "Vitamin K deficiency bleeds.", "Vitamin C deficiency is scurvy."),
        *("Hepatitis A virus is RNA.", "Hepatitis B virus is DNA.", "Factor V of Leiden.", "Factor X of clotting."),
        *("Diabetes type 1.", "Diabetes type 2.", "Interferon-\u03b1 therapy.", "Interferon-β therapy."),
        *("A patient with a cold. A doctor.", "Crohn's disease.", "Vitamins: D, then E and B."),
    ],
    "es": [
        *("La vitamina A y la vista.", "La vitamina E y la piel.", "La vitamina K y la sangre."),
        *("Grupo sanguíneo O.", "Grupo sanguíneo B.", "Hepatitis E aguda.", "Y a la semana mejora o no."),
        *("A los 3 años.", "A los 6 años.", "Linfocitos T.", "Linfocitos B."),
    ],
}


QUERIES = [
    *(("en", f"What is vitamin {letter}?", f"Vitamin {letter} ") for letter in "AKC"),
    *(("en", f"hepatitis {letter}", f"Hepatitis {letter} ") for letter in "AB"),
    *(("en", f"factor {letter}", f"Factor {letter} ") for letter in "VX"),
    *(("en", f"a type {digit} diabetes", f"Diabetes type {digit}.") for digit in "12"),
    *(("en", f"{letter} interferon", f"Interferon-{letter} ") for letter in "\u03b1β"),
    *(("en", "vitamin k", "Vitamin K "), ("en", "VITAMIN A", "Vitamin A "), ("en", "A, B, D", "Vitamins: D")),
    *(("es", f"¿Qué vitamina {letter}?", f"La vitamina {letter} ") for letter in "AEK"),
    *(("es", f"del grupo {letter} sanguíneo", f"Grupo sanguíneo {letter}.") for letter in "OB"),
    *(("es", f"a los {digit} años", f"A los {digit} ") for digit in "36"),
    ("es", "los linfocitos T y B", "Linfocitos "),
]


def test_a_single_letter_or_digit_is_a_word() -> None:
    for language, query, first in QUERIES:
        letters = build_corpus("letters", [Passage(text, "", text, "s") for text in LETTERS[language]], source="here")
        hits = BM25Retriever(letters, language).search([query], 3)[0]
        assert hits[0].passage.id.startswith(first), query
        assert first == "Linfocitos " or len(hits) == 1 or hits[0].score > hits[1].score


def test_articles_and_what_follows_an_apostrophe_are_no_words() -> None:
    for language, query in (("en", "A the, a of it's? A is"), ("es", "A la y o. Y a las, e")):
        letters = [Passage(text, "", text, "s") for text in LETTERS[language]]
        assert BM25Retriever(build_corpus("letters", letters, source="here"), language).search([query], 3) == [[]]


def test_an_accent_finds_its_word_however_it_is_written(spanish) -> None:
    apart = [Passage(one.id, "", unicodedata.normalize("NFD", one.content), "s") for one in spanish.passages]
    written = build_corpus("apart", apart, source="here")
    query = "La alimentación del niño con anemia ferropénica: ¿cuál es la más frecuente?"
    expected = _summary(BM25Retriever(spanish, "es").search([query], 5))
    for other in ("NFC", "NFD"):
        assert _summary(BM25Retriever(written, "es").search([unicodedata.normalize(other, query)], 5)) == expected
    assert len(expected[0]) == 5


def test_an_index_is_kept_and_used_again(corpus, spanish, queries, tmp_path) -> None:
    expected = _summary(BM25Retriever(corpus, "en", tmp_path).search(queries, 10))
    (place,) = tmp_path.iterdir()
    written = {file: file.stat().st_mtime_ns for file in place.iterdir()}
    assert _summary(BM25Retriever(load_corpus(SAMPLE), "en", tmp_path).search(queries, 10)) == expected
    assert {file: file.stat().st_mtime_ns for file in place.iterdir()} == written
    for passages in (corpus, spanish):
        BM25Retriever(passages, "es", tmp_path).search(["leukemia"], 1)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("name", ["data.csc.index.npy", "vocab.index.json"])
def test_a_cut_index_is_refused(name, corpus, queries, tmp_path) -> None:
    BM25Retriever(corpus, "en", tmp_path).search(queries, 10)
    (place,) = tmp_path.iterdir()
    data = (place / name).read_bytes()
    (place / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(DatasetError, match=r"cannot be read .*: remove the folder"):
        BM25Retriever(corpus, "en", tmp_path).search(queries, 10)

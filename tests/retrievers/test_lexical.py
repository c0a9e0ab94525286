"""BM25 and TF-IDF beside bm25s called directly and a computation by hand, with real questions as queries."""

import math
import re
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.retrievers import BM25Retriever, Corpus, Passage, TfidfRetriever, build_corpus, load_corpus
from medexam.specs import DatasetSpec

SAMPLE = Path(__file__).parent / "corpus_sample"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus(SAMPLE)


@pytest.fixture(scope="module")
def queries() -> list[str]:
    """The stems of the 120 English questions that ship in the package."""
    return [question.stem for question in load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions]


@pytest.fixture(scope="module")
def spanish() -> Corpus:
    """The Spanish questions of the package, each as a passage."""
    questions = load_exam_set(DatasetSpec(name="headqa_sample", language="es")).questions
    return build_corpus("es", [Passage(q.key, "", q.stem, "headqa") for q in questions], source="sample")


@pytest.fixture(params=[BM25Retriever, TfidfRetriever])
def method(request):
    return request.param


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


def _by_hand(corpus: Corpus, queries: list[str]) -> np.ndarray:
    """Row i is query i, column j is passage j: the cosine of TF-IDF vectors, from the formula."""

    def _terms(text: str) -> Counter[str]:
        words = _words(text)
        return Counter([*words, *(f"{a} {b}" for a, b in pairwise(words))])

    documents = [_terms(passage.text) for passage in corpus.passages]
    frequency = Counter(term for document in documents for term in document)
    columns = {term: number for number, term in enumerate(frequency)}
    idf = {term: math.log((1 + len(documents)) / (1 + df)) + 1 for term, df in frequency.items()}

    def _vectors(texts: list[Counter[str]]) -> np.ndarray:
        rows = np.zeros((len(texts), len(columns)))
        for row, counts in zip(rows, texts, strict=True):
            for term, count in counts.items():
                if term in columns:
                    row[columns[term]] = count * idf[term]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths == 0, 1, lengths)

    return _vectors([_terms(query) for query in queries]) @ _vectors(documents).T


def test_tfidf_scores_are_those_of_the_formula(corpus, queries) -> None:
    queries = [*queries[:30], "What is the treatment of acute leukemia in children?", "the of and", ""]
    expected = _by_hand(corpus, queries)
    found = TfidfRetriever(corpus, "en").search(queries, len(corpus.passages))
    position = {passage.id: number for number, passage in enumerate(corpus.passages)}
    for hits, row in zip(found, expected, strict=True):
        assert len(hits) == np.count_nonzero(row)
        np.testing.assert_allclose([hit.score for hit in hits], [row[position[hit.passage.id]] for hit in hits], 1e-12)
        assert all(a.score >= b.score for a, b in pairwise(hits))
    assert len(found[30]) > 20
    assert found[-2:] == [[], []]


def test_hits_are_ranked_from_1_and_a_smaller_k_is_a_prefix(method, corpus, queries) -> None:
    retriever = method(corpus, "en")
    deep = retriever.search(queries, len(corpus.passages))
    for k in (1, 7, 50):
        assert retriever.search(queries, k) == [hits[:k] for hits in deep]
    assert all([hit.rank for hit in hits] == list(range(1, len(hits) + 1)) for hits in deep)
    assert retriever.search(queries[:1], 5)[0] == retriever.search(queries, 5)[0]


def test_equal_scores_stand_in_the_order_of_the_corpus(method, corpus) -> None:
    leukemia, other = corpus.passages[0], corpus.passages[-1]
    copies = [Passage(key, leukemia.title, leukemia.content, "copy") for key in "dbaec"]
    twins = build_corpus("twins", [other, *copies], source="sample")
    retriever = method(twins, "en")
    for k in (1, 3, 5):
        assert [hit.passage.id for hit in retriever.search([leukemia.title], k)[0]] == list("dbaec")[:k]


def test_a_query_without_a_known_word_finds_nothing(method, corpus) -> None:
    assert method(corpus, "en").search(["qwxyz", "", "the of and", "?"], 3) == [[], [], [], []]
    assert method(corpus, "en").search([], 3) == []
    for k in (0, 201):
        with pytest.raises(ValueError, match=f"k is {k}: it must be from 1 to the 200 passages"):
            method(corpus, "en").search(["leukemia"], k)
    empty = build_corpus("empty", [Passage("a", "", "the of and", "s")], source="here")
    with pytest.raises(DatasetError, match="corpus empty has only stop words"):
        method(empty, "en").search(["the"], 1)


def test_spanish_stems_and_stop_words(method, spanish) -> None:
    query = spanish.passages[0].content
    assert method(spanish, "es").search([query], 1)[0][0].passage == spanish.passages[0]
    assert method(spanish, "es").search(["el de la y los"], 5) == [[]]
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
    for method in (BM25Retriever, TfidfRetriever):
        assert method(passages, language).search([stop_words], 2) == [[]]


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


def test_a_single_letter_or_digit_is_a_word(method) -> None:
    for language, query, first in QUERIES:
        letters = build_corpus("letters", [Passage(text, "", text, "s") for text in LETTERS[language]], source="here")
        hits = method(letters, language).search([query], 3)[0]
        assert hits[0].passage.id.startswith(first), query
        assert first == "Linfocitos " or len(hits) == 1 or hits[0].score > hits[1].score


def test_articles_and_what_follows_an_apostrophe_are_no_words(method) -> None:
    for language, query in (("en", "A the, a of it's? A is"), ("es", "A la y o. Y a las, e")):
        letters = [Passage(text, "", text, "s") for text in LETTERS[language]]
        assert method(build_corpus("letters", letters, source="here"), language).search([query], 3) == [[]]


def test_an_accent_finds_its_word_however_it_is_written(method, spanish) -> None:
    apart = [Passage(one.id, "", unicodedata.normalize("NFD", one.content), "s") for one in spanish.passages]
    written = build_corpus("apart", apart, source="here")
    query = "La alimentación del niño con anemia ferropénica: ¿cuál es la más frecuente?"
    expected = _summary(method(spanish, "es").search([query], 5))
    for other in ("NFC", "NFD"):
        assert _summary(method(written, "es").search([unicodedata.normalize(other, query)], 5)) == expected
    assert len(expected[0]) == 5


def test_digest_tells_corpus_method_and_language_apart(corpus, spanish) -> None:
    digests = [
        method(passages, language).digest
        for method in (BM25Retriever, TfidfRetriever)
        for passages in (corpus, spanish)
        for language in ("en", "es")
    ]
    assert len(set(digests)) == 8
    assert BM25Retriever(corpus, "en").digest == BM25Retriever(load_corpus(SAMPLE), "en", SAMPLE).digest


def test_an_index_is_kept_and_used_again(corpus, queries, tmp_path) -> None:
    expected = _summary(BM25Retriever(corpus, "en", tmp_path).search(queries, 10))
    (place,) = tmp_path.iterdir()
    written = {file: file.stat().st_mtime_ns for file in place.iterdir()}
    assert _summary(BM25Retriever(corpus, "en", tmp_path).search(queries, 10)) == expected
    assert {file: file.stat().st_mtime_ns for file in place.iterdir()} == written
    BM25Retriever(corpus, "es", tmp_path).search(["leukemia"], 1)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("damage", [lambda data: data[:-2] + b"\x7f" + data[-1:], lambda data: data[: len(data) // 2]])
@pytest.mark.parametrize("name", ["data.csc.index.npy", "vocab.index.json"])
def test_a_damaged_index_is_built_anew(name, damage, corpus, queries, tmp_path) -> None:
    expected = _summary(BM25Retriever(corpus, "en", tmp_path).search(queries, 10))
    (place,) = tmp_path.iterdir()
    (place / name).write_bytes(damage((place / name).read_bytes()))
    assert _summary(BM25Retriever(corpus, "en", tmp_path).search(queries, 10)) == expected
    assert list(tmp_path.iterdir()) == [place]

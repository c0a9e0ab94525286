"""What columns are called in other people's files: by field, in the languages of exams, whatever their spelling.

It says what a name may mean, never what a column holds.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple

_LISTS = """\
stem: stem question question_text question_stem qtext query prompt sent1 problem problem_text question_body body item
stem: q ques input pregunta enunciado pergunta questao enonce intitule frage fragetext fragestellung aufgabe domanda
stem: quesito item_stem questiontext questions 问题 题目 题干 問題 問題文 設問 вопрос текст_вопроса 질문 문제 السؤال
options: options choices answer_choices alternatives endings option choice answer_options options_list choices_list
options: opciones alternativas opcoes opzioni alternative propositions antwortmoglichkeiten antwortoptionen
options: 选项 選択肢 варианты варианты_ответов 보기 answers candidates respuestas reponses risposte antworten respostas
answer: answer answers label gold answer_idx answer_index answer_key answerkey cop correct correct_answer
answer: correct_option
answer: correct_answers right ra target solution answer_letter key final_decision correct_choice correct_index
answer: correct_idx correct_id correct_option_id correct_answer_id right_answer gold_answer gold_label golden ans
answer: expected expected_answer ideal answer_label respuesta respuesta_correcta correcta opcion_correcta solucion clave
answer: resposta resposta_correta correta gabarito alternativa_correta reponse bonne_reponse reponse_correcte
answer: reponses_correctes correct_reponse antwort richtige_antwort losung richtig risposta risposta_corretta corretta
answer: risposta_esatta esatta soluzione completion output rc
answer: 答案 正确答案 正解 解答 ответ правильный_ответ 정답 الاجابة
answer: labels
wrong: incorrect_answers wrong_answers distractors incorrect wrong distractor incorrect_answer wrong_answer false
wrong: incorrect_options wrong_options respuestas_incorrectas incorrecta errada incorreta mauvaise falsch sbagliata
context: context contexts passage vignette case text background scenario clinical_case case_text abstract paragraph
context: caso caso_clinico contexto contexte cas_clinique kontext fallbeschreibung contesto 背景 контекст
explanation: explanation exp rationale reasoning explicacion explicacao explication erklarung spiegazione justificacion
image: image image_path picture figure img image_url imagen imagem bild immagine
subject: subject topic category discipline subject_name specialty area materia tema asignatura especialidad disciplina
subject: assunto matiere specialite fach thema argomento
year: year ano anno annee jahr
exam: exam exam_name exam_id booklet examen exame prova esame prufung convocatoria
id: id qid question_id uid index unique_id sample_id item_id id_pregunta
split: split
start: start answer_start
weak: answers candidates respuestas reponses risposte antworten respostas choice alternative
in stem: question pregunta enunciado pergunta questao enonce frage domanda stem
in answer: answer correct gold correcta correta corretta respuesta resposta reponse antwort risposta solution
in options: option options opcion opciones opcao opzione choice choices answer alternative alternativa op opt ending
in options: respuesta resposta reponse risposta antwort proposition item ans o a r 选项 選択肢 вариант
in neither: id number num no nr n type category image count year difficulty level format class source options choices
in neither: start rationale explanation reason time score points comment length user student wrong incorrect false
in neither: incorrectas distractor is has url nbr nb
as explanation: explanation explanations explain rationale rationales reason reasoning cot comment comments feedback exp
as explanation: justification support explicacion comentario explicacao explication erklarung spiegazione
as media: image images img picture pictures figure figures photo audio video sound media scan radiograph ecg ekg plot
as media: imagen imagenes imagem figura foto bild immagine graph chart table tables
as needed: case vignette history lab labs findings statement statements passage text stem lead option options choice
as needed: answer answers correct right question context background content body result results alternative wrong
as harmless: id ids uid uuid idx index no nr num number n qid row line page source src url link origin reference ref
as harmless: references citation author license licence copyright dataset version date created updated time timestamp
as harmless: duration limit topic topics subject subjects subtopic chapter section category categories tag tags keyword
as harmless: keywords area discipline specialty speciality module course department objective year month period session
as harmless: exam
as harmless: booklet test part paper batch country region university level grade difficulty bloom type qtype kind format
as harmless: class group set split fold points score marks mark percent pct percentage rate count counts views votes
as harmless: p rit total title name names meta metadata info schema entry shot user student editor instruction
as harmless: instructions
as harmless: tema asignatura materia categoria curso ano numero dificultad fuente pagina assunto disciplina matiere
as harmless: sujet niveau fach thema argomento schwierigkeit quelle jahr nummer kapitel seite difficulte annee
as harmless: chapitre dificuldade fonte banca difficolta
as points: points point marks mark weight
as void: annulled anulada anulado annulee annullata void voided deleted eliminada withdrawn removed cancelled invalid
as void: excluded discarded retired unscored reserve reserva impugnada active valid scored enabled approved published
as void: usable status estado"""
_BY_LIST: dict[str, tuple[str, ...]] = {}
for _name, _, _words in (line.partition(": ") for line in _LISTS.splitlines()):
    _BY_LIST[_name] = (*_BY_LIST.get(_name, ()), *_words.split())
NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: words for name, words in _BY_LIST.items() if " " not in name and name != "weak"}
)
"""Field -> the names that its column often has, the likeliest first; `wrong` are options that are not right."""
KINDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {name[3:]: frozenset(words) for name, words in _BY_LIST.items() if name.startswith("as ")}
)
"""What a word in a column's name says of what no field is read from -> these words."""
WEAK = frozenset(_BY_LIST["weak"])
"""Names of options that right answers have as well."""
_CORES: Mapping[str, frozenset[str]] = {field: frozenset(_BY_LIST[f"in {field}"]) for field in ("stem", "answer")}
"""Field -> words that say so within a longer name."""
_NOT = frozenset(_BY_LIST["in neither"])
"""Words that make a longer name mean something else."""
_OPTION_WORDS = frozenset(_BY_LIST["in options"])
ALPHABETS = ("abcdefghijklmnopqrst", "αβγδεζ", "абвгдеж", "ابجدهو", "أبجدهو", "アイウエオカ", "甲乙丙丁戊己", "กขคงจ")
"""Letters that count."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_ENDING = re.compile(r"([a-z]{2,})([a-j])")


def shift(label: str, distance: int) -> str:
    """Return the label that stands `distance` places behind another; empty if there is none."""
    if label.isdigit():
        return str(int(label) + distance)
    letters = next((letters for letters in ALPHABETS if label.lower() in letters), "")
    letter = letters[letters.find(label.lower()) + distance :][:1]
    return letter.upper() if label.isupper() else letter


def in_order(labels: Iterable[str]) -> list[str]:
    """List letters or numbers in the order in which they count."""
    return sorted(labels, key=lambda label: (len(label), label))


def plain_name(column: str) -> str:
    """Write a name in small letters without accents, its words apart by `_`: `correctAnswer` is `correct_answer`."""
    outer, _, inner = column.rpartition(".")
    apart = _CAMEL.sub("_", column if inner.isdigit() or not outer else inner)
    letters = unicodedata.normalize("NFKD", apart).casefold()
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[\W_]+", "_", unicodedata.normalize("NFC", bare)).strip("_")


def rank(field: str, column: str) -> tuple[int, int] | None:
    """Rank how near a column's name is to those of a field, smaller is nearer; None if it is none.

    The first number is 0 for one of its names, 1 for a longer name with one of its words.
    """
    name = plain_name(column)
    place = next((n for n, alias in enumerate(NAMES[field]) if alias.replace("_", "") == name.replace("_", "")), None)
    if place is not None:
        return 0, place
    words = name.split("_")
    is_one = {words[0], words[-1]} & _CORES.get(field, frozenset()) and not _NOT & {*words}
    return (1, len(words)) if is_one and not (field == "stem" and _CORES["answer"] & {*words}) else None


def find_named(field: str, columns: Iterable[str]) -> list[str]:
    """Find the columns whose names are a field's, the nearest first."""
    ranked = [(nearness, column) for column in columns if (nearness := rank(field, column)) is not None]
    return [column for _, column in sorted(ranked, key=lambda pair: pair[0])]


class ColumnGroup(NamedTuple):
    """Columns that differ by a letter or a number that counts on: `Option A`, `Option B`."""

    name: str
    """What they have in common, `#` for the label."""
    columns: tuple[str, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether the name says that they hold wrong options."""
        return self.name.replace("#", "").strip("_") in NAMES["wrong"]

    @property
    def is_known(self) -> bool:
        """Whether the name is one that options have."""
        words = {word for word in self.name.replace("#", "_").split("_") if word}
        return not words or (bool(words & _OPTION_WORDS) and not self.is_wrong)


def find_groups(columns: Sequence[str]) -> list[ColumnGroup]:
    """Find the groups of two columns or more that begin with A, 0 or 1, the longest first."""
    by_name: dict[str, dict[str, str]] = {}
    for column in columns:
        for name, label in _labels(column):
            by_name.setdefault(name, {}).setdefault(label, column)
    groups = []
    for name, labelled in by_name.items():
        first = in_order(labelled)[0]
        following = (shift(first, distance) for distance in range(len(labelled)))
        run = tuple(labelled[label] for label in takewhile(labelled.__contains__, following))
        if first in ("a", "0", "1") and len(run) > 1:
            groups.append(ColumnGroup(name, run))
    return sorted(groups, key=lambda group: (not group.is_known, -len(group.columns)))


def _labels(column: str) -> Iterator[tuple[str, str]]:
    """Yield what a name may be without its label, and the label."""
    words = plain_name(column).split("_")
    outer = column.rpartition(".")[0]
    for place, word in enumerate(words):
        pattern = outer + "_".join([*words[:place], "#", *words[place + 1 :]])
        if word.isdigit() and len(word) < 3:
            yield pattern, str(int(word))
        for alphabet in ALPHABETS if len(word) == 1 else ():
            if word in alphabet:
                yield pattern, ALPHABETS[0][alphabet.index(word)]
    ending = _ENDING.fullmatch(words[-1])
    if ending is not None:
        yield f"{outer}{'_'.join([*words[:-1], ending[1]])}#", ending[2]

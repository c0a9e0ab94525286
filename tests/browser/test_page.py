"""The page of `medexam report --html` in a real browser, opened from the disk: tables, filters, questions, bad text."""

import csv
import json
import os
from pathlib import Path

import pytest
import yaml

import medexam
from browsing import CHROMIUM, Browser
from drawn_pictures import draw, write_own
from medexam.datasets import load_exam_set
from medexam.measures import mcnemar_p
from medexam.predictions import Failure, Reason, RetrievedPassage, Status
from medexam.specs import DatasetSpec
from stored_runs import write_run

SAMPLE = Path(medexam.__file__).parent / "datasets" / "sample" / "HEAD_EN.json"
HOSTILE = "</script><script>pwned=1</script><img src=x onerror=pwned=2><svg/onload=pwned=3>\" onclick='pwned=4 {{7*7}}"
LONGEST = {"kind": "longest"}
REASONING = {"kind": "chain_of_thought"}
AXE = os.environ.get("AXE_CORE", "")
FAULTS = """
axe.run(document, {resultTypes: ["violations"]}).then((found) => ({
    passed: found.passes.length,
    faults: found.violations.flatMap((rule) => rule.nodes.map((one) => `${rule.id} (${rule.impact}): ${one.html}`)),
}))
"""
CHOOSE_SECOND = (
    "(s => { s.selectedIndex = 1; s.dispatchEvent(new Event('change')); })(document.querySelector('#against select'))"
)
PICTURE = "document.querySelector('.detail img.asked')"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def exams(tmp_path_factory):
    """The questions of the sample; the third one's stem and first option are hostile."""
    path = tmp_path_factory.mktemp("data") / "HEAD_EN.json"
    document = json.loads(SAMPLE.read_text(encoding="utf-8"))
    exam = next(iter(document["exams"].values()))
    exam["data"][2]["qtext"] = HOSTILE
    exam["data"][2]["answers"][0]["atext"] = HOSTILE
    path.write_text(json.dumps(document), encoding="utf-8")
    return load_exam_set(DatasetSpec(name="headqa_v1", path=path))


def _reasoned(question, gold):
    """Right, unanswered, failed or hostile by turns, with all that a page can show."""
    spent = {"prompt_tokens": 90, "completion_tokens": 4, "latency_s": 0.5, "finish_reason": "stop"}
    if question.stem == HOSTILE:
        passages = (RetrievedPassage(id=HOSTILE, source=HOSTILE, score=7.25),)
        said = {"reply": HOSTILE, "rationale": f"First, {HOSTILE}", "passages": passages}
        scores = {"option_scores": dict.fromkeys(question.option_numbers, -1.0), "score_unit": HOSTILE}
        return {"status": Status.ANSWERED, "answer": gold, **said, **scores, **spent}
    turn = question.number % 4
    if turn == 3:
        return {"status": Status.FAILED, "failure": Failure(kind="LMTransportError", message=HOSTILE)}
    if turn == 2:
        return {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, "reply": HOSTILE, **spent}
    return {"status": Status.ANSWERED, "answer": gold, "reply": f"Because. {{Answer: {gold}}}", **spent}


def _is_flipped(question, gold) -> bool:
    other = _reasoned(question, gold)
    return other["status"] is not Status.FAILED and (gold == 1) != (other.get("answer") == gold)


@pytest.fixture(scope="module")
def runs(exams, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    dataset = {"path": exams.source}
    return [
        write_run(
            place / "longest",
            exams,
            LONGEST,
            lambda question, gold: {"status": Status.ANSWERED, "answer": 1},
            dataset=dataset,
        ),
        write_run(place / "reasoning", exams, REASONING, _reasoned, dataset=dataset, warnings=(HOSTILE,)),
    ]


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    medexam.report(*(run.path for run in runs), html=path)
    return path.as_uri()


@pytest.fixture
def page(browser, written):
    """The page, with its list of questions there."""
    browser.open("about:blank#again")
    browser.open(written)
    browser.wait("document.querySelector('.excerpt')")
    _set(browser, "Order", "exam")
    return browser


def _labelled(label: str) -> str:
    """The control that a label stands at, as a script."""
    return f"[...document.querySelectorAll('label')].find(l => l.firstChild.textContent === {label!r}).lastChild"


def _set(page, label: str, value: str) -> int:
    """Set a filter; the questions that are left."""
    event = "input" if label == "Search" else "change"
    page.run(f"(c => {{ c.value = {value!r}; c.dispatchEvent(new Event({event!r})); }})({_labelled(label)})")
    page.run("new Promise(done => setTimeout(done, 300))")
    return int(page.run("document.querySelector('.count').textContent").split()[0].replace(",", ""))


def _choose(page, position: int) -> None:
    page.run(f"document.getElementById('row-{position}').click()")
    page.wait(f"document.querySelector('.row[aria-selected=true]')?.id === 'row-{position}'")
    page.wait("document.querySelector('.detail article')")


def _column(page, at: int) -> list[str]:
    rows = f"[...document.querySelectorAll('#by-exam tbody tr')].map(row => row.cells[{at}].textContent)"
    return page.run(rows)


def test_a_header_sorts_its_table_by_click_and_by_key(page) -> None:
    page.run("location.hash = 'by-exam'")
    page.wait("document.getElementById('scores-by-group-section').open")
    before = _column(page, 0)
    header = "document.querySelectorAll('#by-exam th')[3]"
    assert page.run(f"{header}.getAttribute('aria-sort')") == "none"
    page.run(f"{header}.querySelector('button').click()")
    scores = [float(text.split()[0]) for text in _column(page, 3)]
    assert scores == sorted(scores, reverse=True)
    assert page.run(f"{header}.getAttribute('aria-sort')") == "descending"
    page.run(f"{header}.querySelector('button').focus()")
    page.press("Enter")
    scores = [float(text.split()[0]) for text in _column(page, 3)]
    assert scores == sorted(scores)
    assert page.run("document.querySelectorAll('#by-exam th[aria-sort=ascending]').length") == 1
    page.press("Enter")
    assert _column(page, 0) == before


def test_filters_narrow_the_list(page, exams) -> None:
    biology = sum(question.exam.discipline == "biology" for question in exams.questions)
    assert _set(page, "Discipline", "biology") == biology
    of_2013 = [q for q in exams.questions if q.exam.discipline == "biology" and q.exam.year == 2013]
    assert _set(page, "Year", "2013") == len(of_2013)
    page.run("[...document.querySelectorAll('.filters button')][0].click()")
    page.wait("document.querySelector('.count').textContent.startsWith('120 of 120')")
    right = [question for question in exams.questions if exams.golds[question.key].number == 1]
    assert _set(page, "longest", "r") == len(right)
    assert _set(page, "longest", "w") == 120 - len(right)
    assert _set(page, "longest", "") == 120
    assert _set(page, "chain_of_thought", "f") == sum(
        question.number % 4 == 3 and question.stem != HOSTILE for question in exams.questions
    )


def test_a_baseline_is_chosen_on_the_page(page, exams) -> None:
    """What the page counts is what Python counts on the questions that both runs have scored."""
    lost = gained = n = 0
    for question in exams.questions:
        gold = exams.golds[question.key].number
        other = _reasoned(question, gold)
        if other["status"] is not Status.FAILED:
            n += 1
            lost += gold == 1 != other.get("answer")
            gained += other.get("answer") == gold != 1
    row = "[...document.querySelectorAll('#against tbody td')].map(cell => cell.textContent)"
    p = mcnemar_p(lost, gained)
    shown = [f"{100 * (gained - lost) / n:+.1f}", str(gained), str(lost), "<0.001" if p < 0.001 else f"{p:.3f}"]
    assert page.run(row) == ["chain_of_thought", *shown]
    page.run(CHOOSE_SECOND)
    assert page.run(row) == ["longest", f"{100 * (lost - gained) / n:+.1f}", str(lost), str(gained), shown[-1]]


def test_flipped_questions_are_those_that_one_run_alone_has_right(page, exams) -> None:
    flipped = [q.key for q in exams.questions if _is_flipped(q, exams.golds[q.key].number)]
    assert _set(page, "Runs", "flipped") == len(flipped) > 0
    marks = page.run("[...document.querySelectorAll('.row')].map(row => row.querySelector('.marks').textContent)")
    assert all(signs.count("\u2713") == 1 for signs in marks)


def test_search_finds_words_of_the_stem_whatever_their_accents(page, exams) -> None:
    texts = [
        " ".join([each.stem, each.key, *(option.text for option in each.options)]).lower() for each in exams.questions
    ]
    holding = ["the" in text for text in texts]
    assert _set(page, "Search", "TH\u00c9") == sum(holding)
    assert _set(page, "Search", exams.questions[5].key) >= 1
    assert _set(page, "Search", "no such words anywhere") == 0
    assert page.run("document.querySelector('.detail').textContent") == "No question fits the search and the filters."


def test_after_a_search_the_pane_shows_a_question_of_the_list_and_options_are_searched(page, exams) -> None:
    _choose(page, 0)
    option = exams.questions[40].options[2].text
    fitting = [
        each.key for each in exams.questions if option.lower() in "\n".join(o.text for o in each.options).lower()
    ]
    assert _set(page, "Search", option) >= len(fitting) > 0
    assert page.run("document.querySelector('.detail h3').textContent") in fitting
    assert page.run("document.querySelector('.row[aria-selected=true]')?.id") == "row-0"


def test_what_a_reader_chose_is_in_the_address(page, written, exams) -> None:
    count = _set(page, "Discipline", "biology")
    _set(page, "Search", "the")
    page.run("document.querySelectorAll('#scores th button')[1].click()")
    page.run(CHOOSE_SECOND)
    _choose(page, 1)
    seen = "[...document.querySelectorAll('.count, .detail h3, #against tbody, #scores tbody')].map(e => e.textContent)"
    before, address = page.run(seen), page.run("location.href")
    assert 0 < int(before[-2].split()[0]) < count
    page.open("about:blank#again")
    page.open(address)
    page.wait("document.querySelector('.detail article')")
    assert page.run(seen) == before
    assert page.run("document.querySelector('#scores th[aria-sort=descending]').textContent") == "n"


def test_all_replies_to_a_question_stand_in_columns(browser, exams, tmp_path) -> None:
    folders = [
        write_run(
            tmp_path / name,
            exams,
            {"kind": "zero_shot", "answer_format": "guided"}
            if name == "b"
            else {"kind": "zero_shot", "samples": samples},
            lambda question, gold, name=name: {
                "status": Status.ANSWERED,
                "answer": gold,
                "reply": f"Run {name} says so",
            },
            dataset={"path": exams.source},
        )
        for samples, name in enumerate("abcd", 2)
    ]
    medexam.report(*(folder.path for folder in folders), html=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    browser.wait("document.querySelector('.beside summary')")
    browser.run("document.querySelector('.beside').open = true")
    columns = browser.run("[...document.querySelectorAll('.columns .reply')].map(each => each.textContent)")
    assert columns == [f"Run {name} says so" for name in "abcd"]
    marked = browser.run("[...document.querySelectorAll('.columns mark')].map(each => each.textContent)")
    assert marked == ["b", "c", "d"]


@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_cut(page, width) -> None:
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    try:
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.run("new Promise((done) => setTimeout(done, 300))")
        assert page.run("document.documentElement.scrollWidth") <= width
        cut = """[...document.querySelectorAll('select, input, button')].filter((one) => {
            const box = one.getBoundingClientRect();
            const frame = one.closest('.detail, .grid, body').getBoundingClientRect();
            return box.width && !one.closest('.wide') && (box.right > frame.right + 1 || box.left < frame.left - 1);
        }).map((one) => one.outerHTML.slice(0, 80))"""
        assert page.run(cut) == []
    finally:
        page.send("Emulation.clearDeviceMetricsOverride")


def test_replies_and_prompts_are_searched_on_request(page, exams) -> None:
    replies = [_reasoned(question, 1).get("reply", "") for question in exams.questions]
    assert _set(page, "Search", "{Answer:") == 0
    page.run("document.querySelector('.deep input').click()")
    assert page.wait("parseInt(document.querySelector('.count').textContent)") == sum("{Answer:" in r for r in replies)


def test_marks_and_comments_stay_and_are_saved_as_a_sheet(page, written, exams) -> None:
    at = next(at for at, question in enumerate(exams.questions) if question.stem == HOSTILE)
    _choose(page, at)
    page.wait(f"document.querySelector('.stem').textContent === {json.dumps(HOSTILE)}")
    page.run("(s => { s.value = '4'; s.dispatchEvent(new Event('change')); })(document.querySelector('.own select'))")
    page.run("(s => { s.value = '=1+1'; s.dispatchEvent(new Event('input')); })(document.querySelector('.own input'))")
    page.open("about:blank#again")
    page.open(f"{written}#question={exams.questions[at].key}")
    page.wait("document.querySelector('.own input')?.value === '=1+1'")
    page.run("URL.createObjectURL = (blob) => { sheet = blob.text(); return '#'; }")
    page.run("[...document.querySelectorAll('button')].find(b => b.textContent === 'Save 1 mark').click()")
    head, row = csv.reader(page.run("sheet").lstrip("\ufeff").splitlines())
    assert head == ["code", "question", "reference", "answer", "correctness", "completeness", "comment", "run_folder"]
    assert (row[0], row[4:7]) == (f"longest/{exams.questions[at].key}/", ["4", "", "'=1+1"])


def test_a_table_is_copied_as_it_is_sorted_and_as_csv_with_a_column_a_number(page) -> None:
    page.run("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { copied = text; }}})")
    copy = "[...document.querySelectorAll('.copy button')].find(b => b.textContent === '{}').click()"
    cell = "[...document.querySelectorAll('#scores tbody tr')].find(r => r.textContent.includes('longest')).cells[2]"
    accuracy = " ".join(page.run(f"{cell}.textContent").split())
    page.run(copy.format("Markdown"))
    first, *lines = page.run("copied").splitlines()
    assert first.startswith("| Program | n | Accuracy |")
    assert any("longest" in line and accuracy in line for line in lines)
    page.run(copy.format("CSV"))
    rows = list(csv.DictReader(page.run("copied").splitlines()))
    (row,) = [row for row in rows if row["Program"] == "longest"]
    numbers = [f"{float(row[name]):.1f}" for name in ("Accuracy", "Accuracy_low", "Accuracy_high")]
    assert accuracy == f"{numbers[0]} [{numbers[1]}, {numbers[2]}]"


def test_a_strip_stands_where_its_score_is_on_the_scale(page) -> None:
    labels = "[...document.querySelectorAll('tfoot text')]"
    ticks = page.run(f"{labels}.map(t => [parseFloat(t.getAttribute('x')), +t.textContent])")
    (left, low), (right, high) = ticks[:2]
    cells = "[...document.querySelectorAll('td.charted')]"
    strips = f"{cells}.map(c => [parseFloat(c.querySelector('circle').getAttribute('cx')), +c.dataset.value])"
    for place, value in page.run(strips):
        assert low + (place - left) / (right - left) * (high - low) == pytest.approx(value, abs=0.05)


def test_a_question_shows_what_was_asked_and_answered(page, exams) -> None:
    at = next(at for at, question in enumerate(exams.questions) if question.number % 4 in (0, 1))
    _choose(page, at)
    question = exams.questions[at]
    gold = exams.golds[question.key].number
    assert page.run("document.querySelector('.stem').textContent") == question.stem
    assert page.run("document.querySelector('.detail h3').textContent") == question.key
    texts = page.run("[...document.querySelectorAll('.options li')].map(li => li.children[1].textContent)")
    assert texts == [option.text for option in question.options]
    assert page.run("document.querySelector('.gold .printed').textContent") == f"{gold}."
    assert page.run("document.querySelector('.gold').textContent").count("right answer") == 1
    assert page.run("document.querySelectorAll('.run').length") == 2
    assert page.run("document.querySelector('.detail pre').textContent") == f"Because. {{Answer: {gold}}}"
    assert page.run("document.querySelector('.detail .inside .quiet').textContent").startswith("finished by stop")
    assert "question=headqa-v1" in page.run("location.hash")


def test_hostile_text_is_shown_and_does_nothing(page, exams) -> None:
    at = next(at for at, question in enumerate(exams.questions) if question.stem == HOSTILE)
    _choose(page, at)
    page.wait(f"document.querySelector('.stem').textContent === {json.dumps(HOSTILE)}")
    shown = page.run("[...document.querySelectorAll('.detail .data')].map(each => each.textContent)")
    assert shown.count(HOSTILE) == 5  # stem, option, reply, passage and its source
    assert f"First, {HOSTILE}" in shown
    assert HOSTILE in page.run("document.querySelector('.warnings').textContent")
    page.run("new Promise(done => setTimeout(done, 200))")
    assert page.run("typeof pwned") == "undefined"
    assert page.run("document.querySelectorAll('svg[onload], #browser img, [onclick], [onerror]').length") == 0


def test_nothing_is_requested_and_nothing_goes_wrong(page) -> None:
    _choose(page, 1)
    asked = [said["params"]["request"]["url"] for said in page.events if said["method"] == "Network.requestWillBeSent"]
    assert {address.split(":")[0] for address in asked} <= {"file", "data"}
    assert sum(address.startswith("file:") for address in asked) == 1
    assert not [said for said in page.events if said["method"] in {"Runtime.exceptionThrown", "Log.entryAdded"}]


def test_the_list_is_walked_by_keys_and_holds_only_the_rows_in_sight(page, exams) -> None:
    assert page.run("document.querySelectorAll('.row').length") < 40
    page.run("document.querySelector('.list').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        page.press(key)
    page.wait(f"document.querySelector('.detail h3')?.textContent === {exams.questions[1].key!r}")
    page.press("End")
    page.wait(f"document.querySelector('.detail h3').textContent === {exams.questions[-1].key!r}")
    assert page.run("document.querySelector('.list').getAttribute('aria-activedescendant')") == "row-119"
    assert page.run("document.getElementById('row-119').getAttribute('aria-setsize')") == "120"
    assert page.run(
        "[...document.querySelectorAll('.walk button')].find(b => b.textContent.startsWith('Next')).disabled"
    )


@pytest.mark.skipif(not AXE, reason="AXE_CORE does not name axe.min.js (`npm pack axe-core` fetches it)")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 400)])
def test_an_accessibility_checker_finds_no_fault_and_the_page_fits_its_window(page, scheme, width) -> None:
    """axe-core, which a page that refuses scripts of others takes from the debugger alone."""
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    try:
        _choose(page, 2)
        assert page.run("document.documentElement.scrollWidth") <= width
        page.run(f"{Path(AXE).read_text(encoding='utf-8')}; 0")
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.run("new Promise((done) => setTimeout(done, 500))")
        found = page.run(FAULTS)
        assert found["passed"] >= 10
        assert found["faults"] == []
    finally:
        page.send("Emulation.clearDeviceMetricsOverride")
        page.send("Emulation.setEmulatedMedia", features=[])


def test_a_question_is_shown_with_its_prompt_and_its_picture(browser, tmp_path) -> None:
    (tmp_path / "a.png").write_bytes(draw((800, 600)))
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    spec = {
        "name": "seen",
        "dataset": {"kind": "choice", "path": str(write_own(tmp_path, "a.png", None))},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "zero_shot", "images": "shown"},
    }
    runs = medexam.run(spec, runs_dir=tmp_path / "runs", track=False, progress=False)
    medexam.report(runs, html=tmp_path / "page.html")
    address = (tmp_path / "page.html").as_uri()
    browser.open(f"{address}#question=q1")
    browser.wait(f"{PICTURE}?.complete")
    assert browser.run(f"[{PICTURE}.naturalWidth, {PICTURE}.naturalHeight]") == [640, 480]
    browser.run("document.querySelectorAll('.detail details').forEach((one) => { one.open = true; })")
    browser.wait("document.querySelector('.detail').textContent.includes('What is drawn in 1?')")
    assert "{Answer: 1}" in browser.run("document.querySelector('.detail').textContent")
    browser.open("about:blank#again")
    browser.open(f"{address}#question=q2")
    browser.wait("document.querySelector('.detail h3')?.textContent === 'q2'")
    assert browser.run(f"{PICTURE} === null")

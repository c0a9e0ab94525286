"""Texts of other people's files: what is decoded, what stays, and what no file may lose by it."""

import json
import unicodedata
from pathlib import Path

import pytest

from medexam.datasets import read_file
from medexam.datasets.own.tables import Record
from medexam.datasets.own.texts import clean_text, unpack


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Which sign?<br>A) x<BR/>B) y<br />C) z", "Which sign?\nA) x\nB) y\nC) z"),
        ("<p>Which <b>sign</b>?</p>\n<ul>\n<li>one</li>\n<li>two</li></ul>", "Which sign?\none\ntwo"),
        ('<div class="q"><span style="color: red">Which?</span></div>', "Which?"),
        ("<table><tr><td>Na</td><td>140</td></tr><tr><td>K</td><td>4</td></tr></table>", "Na 140\nK 4"),
        ("R&amp;D, 5 &lt; 6, &eacute;, &#233;, &#xE9;, 1&nbsp;mg", "R&D, 5 < 6, é, é, é, 1 mg"),
        ("&lt;b&gt; is a tag", "<b> is a tag"),
        ("Ca<sup>2+</sup>, H<sub>2</sub>O, 10<sup>&minus;3</sup>, 1<sup>st</sup>", "Ca²⁺, H₂O, 10⁻³, 1ˢᵗ"),
        ("HCO<sub>3</sub><sup>-</sup>, V<sub>T</sub>, 10<sup>-1,5</sup>, Z<sup>®</sup>", "HCO₃⁻, VT, 10^(-1,5), Z®"),
        ("x<sup><i>n</i></sup>", "xⁿ"),
        ("a<!-- hidden -->b<style>p {x: 1}</style>", "ab"),
        ("p < 0.05 and q > 1", "p < 0.05 and q > 1"),
        ("if a<b and c>d", "if a<b and c>d"),
        ("<b>, <i> and HLA<a>", "<b>, <i> and HLA<a>"),
        ("AT&T, A&copyB, &unknown;", "AT&T, A&copyB, &unknown;"),
        ('See <img src="a.png"> and <foo>', 'See <img src="a.png"> and <foo>'),
        ("one\n\n  two < three", "one\n\n  two < three"),
        (unicodedata.normalize("NFD", "¿Qué órgano? Ångström"), "¿Qué órgano? Ångström"),
        ("e&#769;", "é"),
        ('["a &amp; b", "<i>c</i>"]', '["a &amp; b", "<i>c</i>"]'),
        ("[Na<sup>+</sup>] over [K<sup>+</sup>]", "[Na⁺] over [K⁺]"),
    ],
)
def test_a_text_is_shown_as_its_reader_sees_it(written, shown) -> None:
    assert clean_text(written) == shown
    assert clean_text(shown) == clean_text(clean_text(shown))


def test_a_list_in_a_cell_is_cleaned_when_it_is_unpacked() -> None:
    assert unpack('["a &quot;b&quot;", "H<sub>2</sub>"]') == ['a "b"', "H₂"]
    assert unpack("{'A': 'x &amp; y'}") == {"A": "x & y"}


def _row(path: Path, row: object) -> Record:
    path.write_text(json.dumps(row), encoding="utf-8")
    (read,) = read_file(path).rows
    assert not isinstance(read.record, str)
    return read.record


def test_every_text_of_a_row_is_cleaned(tmp_path) -> None:
    decomposed = unicodedata.normalize("NFD", "opción")
    row = {"question": "a&amp;b", decomposed: decomposed, "options": [{"text": "<b>x</b>"}], "E": float("nan"), "n": 1}
    expected = {"question": "a&b", "opción": "opción", "options": [{"text": "x"}], "E": None, "n": 1}
    assert _row(tmp_path / "a.jsonl", row) == expected


@pytest.mark.parametrize("counted", [{"start": 3}, {"answers": {"answer_start": [3], "text": ["b"]}}])
def test_a_text_whose_characters_are_counted_stays(tmp_path, counted) -> None:
    row = {"context": "a&amp;b", "question": "<b>q</b>", **counted}
    assert _row(tmp_path / "a.jsonl", row) == row

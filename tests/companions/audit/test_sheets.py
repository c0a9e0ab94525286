"""What leaves for the raters, and what comes back."""

import csv
import io
import json
import re
import stat

import pytest

from medexam.companions.audit.folder import COLUMNS, AuditFolder, write_sheets
from medexam.companions.audit.ratings import read_ratings
from medexam.errors import DatasetError, RunFolderError


def read(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def test_sheets_are_blind_each_in_its_own_order(make_items, audit_folder) -> None:
    items = make_items({"alpha-run": 6, "beta-run-2": 6})
    sheets = write_sheets(audit_folder, items, 2, seed=0)
    first, second = (read(path) for path in sheets)
    assert tuple(first[0]) == COLUMNS
    codes = [row["code"] for row in first]
    assert codes != [row["code"] for row in second]
    assert sorted(codes) == sorted(row["code"] for row in second)
    assert len(codes) == 24
    for path in (*sheets, audit_folder.path / "instructions.txt"):
        text = path.read_text(encoding="utf-8-sig")
        assert not re.search("alpha-run|beta-run|short/|list/|semantic", text)
    assert all(row["answer"].startswith("'=HYPERLINK") and not row["correctness"] for row in first)


def test_the_key_says_what_each_code_stands_for(make_items, audit_folder) -> None:
    items = make_items({"one": 4, "three": 4})
    (sheet,) = write_sheets(audit_folder, items, 1, seed=0)
    shown = {row["code"]: row for row in read(sheet)}
    key = audit_folder.read_key()
    known = {(item.run, item.key): item for item in items}
    assert {(entry.run, entry.key) for entry in key.items} == set(known)
    for entry in key.items:
        item, row = known[entry.run, entry.key], shown[entry.code]
        assert (entry.group, entry.scores) == (item.group, item.scores)
        assert (row["question"], row["answer"]) == (item.question, f"'{item.reply}")
    assert stat.S_IMODE(audit_folder.path.stat().st_mode) == 0o700, "who judges may not see what the codes stand for"


def test_the_same_sample_gives_the_same_files_and_another_other_codes(make_items, tmp_path) -> None:
    items = make_items({"one": 4})
    folders = [AuditFolder(tmp_path / name) for name in ("a", "b", "c", "d")]
    for folder, sample, seed in zip(folders, (items, items, items, items[1:]), (0, 0, 1, 0), strict=True):
        write_sheets(folder, sample, 2, seed)
    names = ("rater_1.csv", "rater_2.csv", "key.json", "instructions.txt")
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    assert len({folder.read_key().sample for folder in folders}) == 3


def test_filled_in_sheets_are_not_overwritten(make_items, audit_folder) -> None:
    write_sheets(audit_folder, make_items({"one": 2}), 1, seed=0)
    with pytest.raises(RunFolderError, match="is not empty, and may hold sheets that were filled in"):
        write_sheets(audit_folder, make_items({"one": 2}), 1, seed=0)


def test_a_place_that_cannot_be_written_is_one_line(make_items, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="choose another folder with --out"):
        write_sheets(AuditFolder(tmp_path / "file"), make_items({"one": 2}), 1, seed=0)


def test_sheets_without_their_key_are_never_found(make_items, audit_folder, monkeypatch) -> None:
    write_json, found = AuditFolder.write_json, []

    def look(self: AuditFolder, *words: object) -> None:
        found.append((audit_folder.path.exists(), sorted(path.name for path in self.path.iterdir())))
        write_json(self, *words)

    monkeypatch.setattr(AuditFolder, "write_json", look)
    write_sheets(audit_folder, make_items({"one": 2}), 1, seed=0)
    assert found == [(False, ["instructions.txt", "rater_1.csv"])]
    assert audit_folder.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_marks_come_back_from_partial_sheets(make_items, audit_folder, fill, tmp_path, delimiter) -> None:
    items = make_items({"one": 3})
    sheets = write_sheets(audit_folder, items, 2, seed=0)
    codes = [entry.code for entry in audit_folder.read_key().items]
    marks = {codes[0]: {"correctness": "4", "completeness": " 2 "}, codes[1]: {"correctness": "1", "comment": "-no"}}
    ana = fill(sheets[0], marks, to=tmp_path / "ana.csv", delimiter=delimiter)

    ratings = read_ratings(audit_folder, [ana, sheets[1]])

    assert ratings.marks("correctness") == {"ana": {codes[0]: 4, codes[1]: 1}}
    assert ratings.marks("completeness") == {"ana": {codes[0]: 2}}
    assert ratings.reviews[0].comments == {codes[1]: "-no"}
    assert [len(review.items) for review in ratings.reviews] == [6, 6]


def test_all_sheets_of_the_folder_are_read_by_default(make_items, audit_folder, fill) -> None:
    sheets = write_sheets(audit_folder, make_items({"one": 2}), 2, seed=0)
    codes = [entry.code for entry in audit_folder.read_key().items]
    for sheet in sheets:
        fill(sheet, {code: {"correctness": "3"} for code in codes})
    (audit_folder.path / ".~lock.rater_1.csv").write_text("a spreadsheet is open")
    assert list(read_ratings(audit_folder).marks("correctness")) == ["rater_1", "rater_2"]


def test_a_sheet_of_another_sample_is_refused(make_items, tmp_path) -> None:
    mine, other = AuditFolder(tmp_path / "mine"), AuditFolder(tmp_path / "other")
    write_sheets(mine, make_items({"one": 2}), 1, seed=0)
    (sheet,) = write_sheets(other, make_items({"one": 2}), 1, seed=1)
    said = rf"rater_1\.csv, line 2 .*of another sample \({other.read_key().sample}, not {mine.read_key().sample}\)"
    with pytest.raises(DatasetError, match=said):
        read_ratings(mine, [sheet])


def test_bad_codes_are_named(make_items, audit_folder) -> None:
    write_sheets(audit_folder, make_items({"one": 2}), 1, seed=0)
    sample = audit_folder.read_key().sample
    for code in (f"{sample}-999", "7"):
        sheet = audit_folder.path / "ana.csv"
        sheet.write_text(f"code,correctness,completeness\n{code},1,1\n")
        with pytest.raises(DatasetError, match=rf"ana\.csv, line 2 \({code}\): no answer of this audit has that code"):
            read_ratings(audit_folder, [sheet])


def test_nothing_marked_and_no_sheet_are_said(make_items, audit_folder) -> None:
    (sheet,) = write_sheets(audit_folder, make_items({"one": 2}), 1, seed=0)
    with pytest.raises(DatasetError, match="is marked yet"):
        read_ratings(audit_folder)
    sheet.unlink()
    with pytest.raises(RunFolderError, match=r"holds no sheet \(\*\.csv\)"):
        read_ratings(audit_folder)


def test_a_damaged_key_is_one_line(make_items, audit_folder) -> None:
    (sheet,) = write_sheets(audit_folder, make_items({"one": 2}), 1, seed=0)
    key = audit_folder.path / "key.json"
    document = json.loads(key.read_text())
    for damage, said in (
        (json.dumps({**document, "items": [{"code": 1}]}), r"is not an audit's key \(items\.0"),
        ("{", "cannot read"),
    ):
        key.write_text(damage)
        with pytest.raises(RunFolderError, match=said):
            read_ratings(audit_folder, [sheet])
    key.unlink()
    with pytest.raises(RunFolderError, match=r"holds no key\.json"):
        read_ratings(audit_folder, [sheet])

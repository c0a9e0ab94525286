"""How long other harnesses' results take: to import, to pair and compare, and to find HEAD-QA's questions by text.

    python bench/referee.py compare --samples 200000
    python bench/referee.py inspect --megabytes 300
    python bench/referee.py matching

`compare` makes questions and two files of lm-evaluation-harness with drawn scores, half of the samples each, imports
them, and runs `medexam compare` on the two runs. `inspect` makes a log of that size, packed, whose samples carry long
messages, and reads it. `matching` looks up HEAD-QA v1's own files, the texts that lm-evaluation-harness's data set
`EleutherAI/headqa` was made of, in English and Spanish; it reads them from `$MEDEXAM_DATA`. Each command runs as a
process of its own. `seconds` pass on the clock; on a machine that does something else too, `processor_seconds` tell
what the command itself took. Prints one JSON document.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from medexam_companions.harnesses.imports.document import listed_texts
from medexam_companions.harnesses.imports.importing import Importer
from medexam_companions.harnesses.imports.samples import HarnessSample
from medexam.specs import DatasetSpec

WORDS = ("the", "patient", "has", "fever", "pain", "cough", "rash", "after", "treatment", "which", "drug", "is")
MESSAGE = 6_000
"""Characters of a message of the made log; a chat with tools has several of them."""


def main() -> None:
    """Run the part that is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("compare").add_argument("--samples", type=int, default=200_000)
    parts.add_parser("inspect").add_argument("--megabytes", type=int, default=300)
    parts.add_parser("matching")
    told = vars(parser.parse_args())
    part: Callable[..., dict[str, Any]] = globals()[f"measure_{told.pop('part')}"]
    print(json.dumps(part(**told), indent=2))


def measure_compare(samples: int) -> dict[str, Any]:
    """Import two files and compare them; seconds and MB of each command."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        _write_questions(here, samples // 2)
        command = [sys.executable, "-c", "from medexam.cli import run_command; run_command()"]
        dataset = ["--set", "dataset.kind=choice", "--set", f"dataset.path={here / 'questions.jsonl'}"]
        runs = ["--runs-dir", str(here / "runs")]
        files = [str(here / f"{name}.jsonl") for name in "ab"]
        imported = _run([*command, "import", *files, *dataset, *runs])
        folders = [str(path) for path in sorted((here / "runs").iterdir())]
        return {"samples": samples, "import": imported, "compare": _run([*command, "compare", *folders, *runs])}


def _write_questions(folder: Path, n: int) -> None:
    drawn = random.Random(1)
    with (
        (folder / "questions.jsonl").open("w") as questions,
        (folder / "a.jsonl").open("w") as a,
        (folder / "b.jsonl").open("w") as b,
    ):
        for place in range(n):
            stem = f"{' '.join(drawn.choices(WORDS, k=20))} ({place})?"
            options = [" ".join(drawn.choices(WORDS, k=5)) + f" {number}" for number in range(4)]
            gold = drawn.randrange(4)
            row = {"id": f"q{place}", "question": stem, "options": options, "answer": "ABCD"[gold]}
            questions.write(json.dumps(row) + "\n")
            for file in (a, b):
                file.write(json.dumps(_lm_eval(place, stem, options, gold, drawn)) + "\n")


def _lm_eval(place: int, stem: str, options: list[str], gold: int, drawn: random.Random) -> dict[str, Any]:
    scores = [-30 * drawn.random() for _ in options]
    return {
        "doc_id": place,
        "doc": {"question": stem, "choices": options},
        "target": str(gold),
        "arguments": {f"gen_args_{i}": {"arg_0": stem, "arg_1": f" {text}"} for i, text in enumerate(options)},
        "resps": [[[str(score), "False"]] for score in scores],
        "filtered_resps": [[str(score), "False"] for score in scores],
        "filter": "none",
        "metrics": ["acc"],
        "acc": float(scores.index(max(scores)) == gold),
    }


def measure_inspect(megabytes: int) -> dict[str, Any]:
    """Read a log of that size; seconds and MB of the process that reads it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.eval"
        samples = _write_log(path, megabytes << 20)
        read = (
            "from pathlib import Path; from medexam_companions.harnesses.imports.reading import read_results; "
            f"[one] = read_results(Path({str(path)!r})); assert len(one.samples) == {samples}"
        )
        return {
            "megabytes": round(path.stat().st_size / 2**20),
            "samples": samples,
            **_run([sys.executable, "-c", read]),
        }


def _write_log(path: Path, size: int) -> int:
    """Write a log of Inspect of at least `size` bytes; how many samples it holds."""
    drawn, n = random.Random(1), 0
    header = {"version": 2, "status": "success", "eval": {"task": "made", "model": "a/b", "packages": {}}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        while archive.fp is not None and archive.fp.tell() < size:
            n += 1
            # Letters that pack to about two thirds, as texts with identifiers and encoded pictures do.
            text = drawn.randbytes(MESSAGE // 2).hex()
            reply = {"role": "assistant", "content": "ANSWER: B"}
            sample = {
                "id": f"q{n}",
                "epoch": 1,
                "input": f"Which one is it ({n})?",
                "choices": ["a", "b", "c", "d"],
                "target": "B",
                "messages": [{"role": "user", "content": text}, {"role": "tool", "content": text[::-1]}, reply],
                "output": {"model": "a/b", "choices": [{"message": reply}], "completion": "ANSWER: B"},
                "scores": {"choice": {"value": "C", "answer": "B"}},
                "events": [{"event": "model", "input": text, "output": text[: MESSAGE // 2]}],
            }
            archive.writestr(f"samples/q{n}_epoch_1.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(header))
    return n


def measure_matching() -> dict[str, Any]:
    """The share of HEAD-QA v1's questions that are found by text and options, and by text alone."""
    found: dict[str, Any] = {}
    for language, name in (("en", "HEAD_EN.json"), ("es", "HEAD.json")):
        importer = Importer(DatasetSpec(name="headqa_v1", language=language), Path(tempfile.gettempdir()))
        matcher = importer.matcher
        rows = list(_published(Path(os.environ["MEDEXAM_DATA"]) / "headqa_v1" / name))
        for way, samples in (
            ("text and options", rows),
            ("text alone", [HarnessSample(stem=row.stem) for row in rows]),
        ):
            matched = matcher.match(samples)
            found[f"{language}, {way}"] = {"share": len(matched.pairs) / len(rows), **matched.counts()}
    return found


def _published(path: Path) -> Iterator[HarnessSample]:
    for exam in json.loads(path.read_text(encoding="utf-8"))["exams"].values():
        for row in exam["data"]:
            yield HarnessSample(stem=row["qtext"], options=listed_texts(row["answers"]))


def _run(command: list[str]) -> dict[str, float]:
    """Seconds, seconds of processor time, and highest memory in MB (10**6 bytes) of a command."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        sys.exit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    processor = used.ru_utime + used.ru_stime
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(processor, 2),
        "peak_mb": round(used.ru_maxrss * 1024 / 1e6),
    }


if __name__ == "__main__":
    main()

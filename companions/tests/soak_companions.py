"""Kills the commands of companions too: `soak` with more commands.

PYTHONPATH=tests:companions/tests python -m soak_companions --minutes 60 --seed 7
"""

import tempfile
from pathlib import Path

import soak

BOOKLET = Path(__file__).parents[1] / "medexam_companions" / "booklets" / "tests" / "booklets" / "libreoffice.pdf"


def main() -> None:
    """Soak with these commands and the core's."""
    key = ["pregunta,respuesta", *(f"{number},{1 + number % 4}" for number in range(1, 25))]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "key.csv").write_text("\n".join(key) + "\n")
        soak.COMMANDS["build"] = soak.Command(
            f"data build --booklet {BOOKLET} --key {folder}/key.csv "
            "--without-images --out built --name Cuaderno_2020_0_B",
            soak.files("built/*/*.parquet"),
        )
        soak.COMMANDS["translate"] = soak.Command(
            "data translate headqa_sample --set model.engine=litellm --set model.name=openai/tiny "
            "--set model.endpoints=[{server}] --set dataset.option_counts=[4] --limit 8 --runs-dir runs --out out",
            soak.files("out/selection.json", "out/*.parquet"),
            "out/replies/*/predictions.jsonl",
        )
        soak.main()


if __name__ == "__main__":
    main()

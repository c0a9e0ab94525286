"""What `medexam index build` encodes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from medexam.cli.options import RayAddressOption
from medexam.cli.settings import Setting


@dataclass(frozen=True)
class BuildSettings:
    """What is encoded, by which encoder, and by whom."""

    corpus: Annotated[
        str | None, Setting("A file, folder or hub data set of passages; $MEDEXAM_DATA's by default.", metavar="PATH")
    ] = None
    encoder: Annotated[str, Setting("medcpt, minilm, a folder or a hub id.")] = "medcpt"
    revision: Annotated[str | None, Setting("Revision of a hub encoder; the newest by default.")] = None
    out: Annotated[
        Path | None,
        Setting(
            "The folder of the index, new or unfinished; by default one in the cache, where runs look.", metavar="DIR"
        ),
    ] = None
    factory: Annotated[
        str | None,
        Setting("FAISS's string of an approximate index, such as IVF4096,PQ64; search is exact by default."),
    ] = None
    parameters: Annotated[str, Setting("Parameters of that index, such as nprobe=64.")] = ""
    device: Annotated[str, Setting("auto, cpu or cuda.")] = "auto"
    dtype: Annotated[Literal["float32", "bfloat16", "float16"], Setting("The encoder's precision.")] = "float32"
    chunk_tokens: Annotated[
        int | None, Setting("Cut longer passages into chunks of N tokens (words and punctuation marks).", min=1)
    ] = None
    chunk_overlap: Annotated[int, Setting("Tokens that neighbouring chunks share.", min=0)] = 0
    skip_bad: Annotated[bool, Setting("Leave out rows that are not JSON or have no text, and count them.")] = False
    executor: Annotated[
        Literal["local", "ray"],
        Setting("Where to encode: local is this process; ray the workers of a cluster."),
    ] = "local"
    ray_address: RayAddressOption = None

    def __post_init__(self) -> None:
        """Refuse settings that do not go together."""
        if self.executor != "ray" and self.ray_address is not None:
            raise typer.BadParameter("needs --executor ray", param_hint="--ray-address")
        if self.parameters and self.factory is None:
            raise typer.BadParameter("needs --factory", param_hint="--parameters")
        if self.factory is not None and self.out is None:
            raise typer.BadParameter("needs --out: in the cache, runs look for exact indexes", param_hint="--factory")
        if self.chunk_overlap >= (self.chunk_tokens or 1):
            raise typer.BadParameter("needs --chunk-tokens, and must be less than it", param_hint="--chunk-overlap")

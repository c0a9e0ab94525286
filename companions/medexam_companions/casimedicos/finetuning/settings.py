"""What a fine-tuning is told: files, model and numbers."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from medexam.cli import Setting
from medexam.errors import SpecError
from medexam_companions.casimedicos.readers.windows import SHARED_TOKENS, WINDOW_TOKENS

Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True)
class FinetuningSettings:
    """Which files, which model, which numbers; `medexam finetune` has a flag for each.

    `window`, `shared`, `answer_tokens`, `epochs` and `seed` are those of Goenaga et al. (2023), "Explanatory argument
    extraction of correct answers in resident medical exams"; `batch` and `learning_rate` are the defaults of
    transformers' Trainer. `intermediate` is for STILT (Phang et al. 2018, arXiv 1811.01088).
    """

    model: Annotated[str, Setting("A folder or a hub id of an encoder.", metavar="MODEL")]
    train: Annotated[
        tuple[Path, ...],
        Setting("Questions with spans, in SQuAD's form; several files are learnt together.", metavar="FILE"),
    ]
    out: Annotated[Path, Setting("The folder to write; it must not exist.", metavar="FOLDER")]
    intermediate: Annotated[
        tuple[Path, ...],
        Setting("Learn from these first, such as SQuAD-es; several files are learnt together.", metavar="FILE"),
    ] = ()
    validation: Annotated[Path | None, Setting("Score the result on these questions.", metavar="FILE")] = None
    variant: Annotated[
        str | None, Setting("Use only the questions of this variant, in --train and --validation.", metavar="VARIANT")
    ] = None
    unstructured: Annotated[
        bool, Setting('Remove phrases such as "(answer 4 correct)" from the contexts of --train and --validation.')
    ] = False
    revision: Annotated[str | None, Setting("Revision of a hub model; the newest by default.")] = None
    epochs: Annotated[int, Setting("Times that --train is read.", min=1)] = 20
    intermediate_epochs: Annotated[int, Setting("Times that --intermediate is read.", min=1)] = 20
    window: Annotated[int, Setting("Tokens of question and context together.", min=32)] = WINDOW_TOKENS
    shared: Annotated[int, Setting("Tokens that windows share; at most a third.", min=1)] = SHARED_TOKENS
    answer_tokens: Annotated[int, Setting("Tokens of the longest answer, for the score.", min=1)] = 512
    batch: Annotated[int, Setting("Windows in one step.", min=1)] = 8
    learning_rate: Annotated[float, Setting("Learning rate of the first step; it falls to 0.")] = 5e-5
    seed: Annotated[int, Setting("Fixes the new head, the order of the windows and the dropout.")] = 42
    device: Annotated[Device, Setting("auto is CUDA if there is one.")] = "auto"

    def __post_init__(self) -> None:
        """Raise `SpecError` without a file, and unless the learning rate is above 0. A path may stand for one file."""
        for name in ("train", "intermediate"):
            if isinstance(getattr(self, name), Path):
                object.__setattr__(self, name, (getattr(self, name),))
        if not self.train:
            raise SpecError("train: name the questions to learn from with --train FILE")
        if not self.learning_rate > 0:
            raise SpecError(f"learning_rate: give a number above 0, found {self.learning_rate}")

    def document(self) -> dict[str, Any]:
        """Build what `finetuning.json` holds of them."""
        return {
            **{name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()},
            "train": str(self.train[0]) if len(self.train) == 1 else [str(path) for path in self.train],
            "intermediate": [str(path) for path in self.intermediate],
        }

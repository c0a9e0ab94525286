"""Answers that another harness has collected: the kind `imported`, which `medexam import` writes and nothing asks."""

from typing import ClassVar, Literal

from medexam.specs.programs.base import ProgramSpec

Harness = Literal[
    "table",
    "lm_eval",
    "inspect",
    "helm",
    "every_eval_ever",
    "opencompass",
    "evalscope",
    "simple_evals",
    "lighteval",
    "cliniqlink",
]
"""What wrote a file of results: lm-evaluation-harness, Inspect, HELM, a converter to Every Eval Ever, OpenCompass,
EvalScope, simple-evals, lighteval, a submission to ClinIQLink, or nothing known: a plain table of answers."""


class ImportedSpec(ProgramSpec):
    """Answers that were read from a file; a run of it is complete, and cannot be asked again."""

    version: ClassVar[int] = 2
    by_content: ClassVar[set[str]] = ProgramSpec.by_content | {"file"}
    answers_anything: ClassVar[bool] = True
    kind: Literal["imported"] = "imported"
    harness: Harness
    """What wrote the file."""
    task: str
    """The harness's own name of what it asked, such as `medqa_4options`."""
    measure: str
    """Which of the harness's measures chose the answers, such as `acc_norm`; with the filter or the epoch, if any."""
    answered_by: str | None = None
    """The model as the harness named it; None if the file does not say."""
    sha256: str
    """Of the file, in hexadecimal."""
    file: str
    """The name of the file."""

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        return f"{self.harness}-{self.task}-{self.measure}"

    @property
    def model_name(self) -> str | None:
        """The model whose answers these are."""
        return self.answered_by

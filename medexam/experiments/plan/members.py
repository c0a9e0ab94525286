"""What an ensemble is made of: the run folders of its members, read when it is combined, and the weights of each."""

import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from medexam.experiments.store.run_folder import RunFolder
from medexam.metrics.stacking import Stacking, fit_stacking
from medexam.predictions import Prediction
from medexam.programs.combining.ensembles import StoredAnswers, member_chances
from medexam.questions import ExamSet, Question

_log = logging.getLogger(__name__)


@dataclass
class StoredMembers:
    """The stored answers of an ensemble's members; `read` before `find`."""

    labels: tuple[str, ...]
    """Program and model of each member, in their order."""
    folders: tuple[RunFolder, ...]
    training: ExamSet | None = None
    """What the weights are fitted on; None where none are."""
    fitted: Stacking | None = None
    """None until `read`, where nothing is fitted, and while a member has not answered all that it is fitted on."""
    _answers: StoredAnswers = field(default_factory=lambda: StoredAnswers(()))

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The fitted weight of each member; None where nothing is fitted."""
        return None if self.fitted is None else self.fitted.weights

    def read(self) -> None:
        """Read what the members have answered by now, and fit the weights; raises as `read_predictions` does."""
        self._answers = StoredAnswers([folder.read_predictions() if folder.exists() else {} for folder in self.folders])
        self.fitted = None if self.training is None else self._fit(self.training)

    def find(self, question: Question) -> tuple[Prediction, ...] | None:
        """Return the answer of each member; None if one has not answered, or the weights cannot be fitted yet."""
        if self.training is not None and self.fitted is None:
            return None
        return self._answers.find(question)

    def describe(self) -> dict[str, Any]:
        """Return what `environment.json` says of the members, JSON-ready."""
        weights = self.weights or (None,) * len(self.folders)
        return {
            "members": [
                {"run_id": folder.name, "label": label, "weight": weight}
                for folder, label, weight in zip(self.folders, self.labels, weights, strict=True)
            ],
            "fitted": None
            if self.fitted is None
            else {
                "questions": self.fitted.n,
                "log_loss": self.fitted.log_loss,
                "uniform_log_loss": self.fitted.uniform_log_loss,
            },
        }

    def _fit(self, training: ExamSet) -> Stacking | None:
        chances, rights = [], []
        for question in training.questions:
            answers = self._answers.find(question)
            if answers is None:
                _log.warning("medexam: warning: the ensemble waits for the members' answers to %s", question.key)
                return None
            numbers, gold = question.option_numbers, training.golds[question.key]
            chances_by_member = [member_chances(question, answer) for answer in answers]
            chances.append(np.array([[member[number] for member in chances_by_member] for number in numbers]))
            rights.append([gold.accepts(number) for number in numbers])
        return fit_stacking(chances, rights)

"""Observers for tests that run experiments."""


class Silent:
    """A `RunObserver` that looks away."""

    def engine_starts(self, model) -> None:
        pass

    def retrieval_starts(self, planned) -> None:
        pass

    def passages_encoded(self, planned, count) -> None:
        pass

    def cell_starts(self, planned) -> None:
        pass

    def asked(self) -> None:
        pass

    def answered(self, prediction) -> None:
        pass

    def stopping(self, in_flight) -> None:
        pass

    def cell_ends(self, run) -> None:
        pass


class Answers(Silent):
    """Keeps the ids of the questions that were answered."""

    def __init__(self) -> None:
        self.answers: list[str] = []

    def answered(self, prediction) -> None:
        self.answers.append(prediction.question)


class Trials:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.ended = []
        self.begun = 0
        self.answers = 0

    def engine_starts(self, model) -> None:
        pass

    def optimization_starts(self, plan, budget) -> None:
        self.budget = budget

    def trial_ends(self, trial) -> None:
        self.ended.append(trial)

    def asked(self) -> None:
        self.begun += 1

    def answered(self, prediction) -> None:
        self.answers += 1

    def stopping(self, in_flight) -> None:
        pass

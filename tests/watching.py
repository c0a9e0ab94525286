"""Observers for tests that run experiments."""


class Silent:
    """The observer of a run that looks away."""

    def engine_starts(self, model) -> None:
        pass

    def retrieval_starts(self, planned):
        return lambda count: None

    def cell_starts(self, planned) -> None:
        pass

    def answered(self, prediction) -> None:
        pass

    def stopping(self, in_flight) -> None:
        pass

    def cell_ends(self, run) -> None:
        pass

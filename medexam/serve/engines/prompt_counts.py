"""Whether a server cuts prompts, as its own counts of tokens show while a run asks."""


class PromptCounts:
    """Finds out while a run asks whether a server cuts prompts: longer ones count no more tokens than shorter ones."""

    _FEWEST = 3
    """Prompts at the same most tokens; natural texts of such different lengths never count alike."""
    _LONGER = 1.25

    def __init__(self) -> None:
        self._most = self._prompts = self._shortest = self._longest = 0

    def add(self, characters: int, tokens: int | None) -> bool:
        """Count a prompt in; return whether it is the first that shows that prompts are cut."""
        if tokens is None or tokens < self._most:
            return False
        earlier_cut = self.cut_at
        if tokens > self._most:
            self._most, self._prompts, self._shortest, self._longest = tokens, 0, characters, characters
        self._prompts += 1
        self._shortest, self._longest = min(self._shortest, characters), max(self._longest, characters)
        return earlier_cut is None and self.cut_at is not None

    @property
    def cut_at(self) -> int | None:
        """Tokens at which prompts seem to be cut; None if nothing shows that."""
        if self._prompts < self._FEWEST or self._longest < self._LONGER * self._shortest:
            return None
        return self._most

    @property
    def warning(self) -> str | None:
        """What a reader should know, with the way out; None if nothing shows that prompts are cut."""
        if self.cut_at is None:
            return None
        return (
            f"the server counted {self.cut_at:,} tokens for each of {self._prompts:,} prompts of {self._shortest:,} "
            f"to {self._longest:,} characters: it cuts prompts there without saying so; give it a larger context "
            "(Ollama: num_ctx) or shorter prompts"
        )

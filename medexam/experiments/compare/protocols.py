"""`medexam compare --protocol`: where the protocols of runs differ, so that numbers that differ are explained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments.compare.section import Compared, Section
from medexam.experiments.store.protocol import NOT_TOLD, Protocol, read_protocol
from medexam.tables import Captioned, Table


@dataclass(frozen=True)
class Protocols(Section):
    """The protocol of each run, the baseline first."""

    found: tuple[Protocol, ...]
    name = "protocol"

    @property
    def differing(self) -> list[str]:
        """What at least two runs tell differently, in the protocol's order."""
        return [each for each in self.found[0] if len(self._told(each)) > 1]

    @property
    def untold(self) -> list[str]:
        """What some run does not tell, so that nobody knows whether it differs."""
        return [each for each in self.found[0] if any(one[each] == NOT_TOLD for one in self.found)]

    def _told(self, each: str) -> set[str]:
        return {one[each] for one in self.found} - {NOT_TOLD}

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """A row for each thing that differs or that some run does not tell."""
        shown = [each for each in self.found[0] if each in self.differing or each in self.untold]
        if not shown:
            return []
        rows = tuple((each, *(one[each] for one in self.found)) for each in shown)
        caption = "Equal digests are equal texts. An imported run has what its harness's files say."
        return [
            (Table("Where the protocols differ", ("What", *names), rows, text_columns=1 + len(self.found)), caption)
        ]

    def sentences(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """What differs, what is not told, and what is the same."""
        same = [each for each in self.found[0] if each not in self.differing and each not in self.untold]
        said = []
        if self.differing:
            said.append(f"The runs differ in {_listed(self.differing)}: any of these may explain a difference.")
        elif not self.untold:
            said.append("The runs' protocols do not differ.")
        if self.untold:
            said.append(f"Not told by every run: {_listed(self.untold)}.")
        if same:
            said.append(f"The same in all runs: {_listed(same)}.")
        return said

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """The protocol of each run, what differs, and what is not told."""
        runs = {key: dict(one) for key, one in zip(keys, self.found, strict=True)}
        return {"runs": runs, "differing": self.differing, "not_told": self.untold}


def find_protocols(compared: Compared) -> Protocols:
    """The protocol of each run, from its folder."""
    return Protocols(
        tuple(read_protocol(folder.read_record(), folder.read_environment()) for folder in compared.folders)
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)

"""`medexam compare --protocol`: where the protocols of runs differ, so that numbers that differ are explained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.experiments.store.protocol import NOT_TOLD, Protocol, read_protocol
from medexam.tables import Captioned, Table


@dataclass(frozen=True)
class Protocols(ComparisonSection):
    """The protocol of each run, the baseline first."""

    protocols: tuple[Protocol, ...]
    name = "protocol"

    @property
    def differing(self) -> list[str]:
        """What at least two runs tell differently, in the protocol's order."""
        return [setting for setting in self.protocols[0] if len(self._told(setting)) > 1]

    @property
    def untold(self) -> list[str]:
        """What some run does not tell, so that nobody knows whether it differs."""
        return [
            setting
            for setting in self.protocols[0]
            if any(protocol[setting] == NOT_TOLD for protocol in self.protocols)
        ]

    def _told(self, setting: str) -> set[str]:
        return {protocol[setting] for protocol in self.protocols} - {NOT_TOLD}

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build a row for each setting that differs or that some run does not tell."""
        settings = [setting for setting in self.protocols[0] if setting in self.differing or setting in self.untold]
        if not settings:
            return []
        rows = tuple((setting, *(protocol[setting] for protocol in self.protocols)) for setting in settings)
        caption = "Equal digests are equal texts. An imported run shows what its harness's files state."
        return [
            (Table("Where the protocols differ", ("What", *names), rows, text_columns=1 + len(self.protocols)), caption)
        ]

    def sentences(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Write what differs, what is not told, and what is the same."""
        shared_settings = [
            setting for setting in self.protocols[0] if setting not in self.differing and setting not in self.untold
        ]
        remarks = []
        if self.differing:
            remarks.append(f"The runs differ in {_listed(self.differing)}: any of these may explain a difference.")
        elif not self.untold:
            remarks.append("The runs' protocols do not differ.")
        if self.untold:
            remarks.append(f"Not stated by every run: {_listed(self.untold)}.")
        if shared_settings:
            remarks.append(f"The same in all runs: {_listed(shared_settings)}.")
        return remarks

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the protocol of each run, what differs, and what is not told."""
        runs = {key: dict(protocol) for key, protocol in zip(keys, self.protocols, strict=True)}
        return {"runs": runs, "differing": self.differing, "not_told": self.untold}


def find_protocols(compared: ComparisonScope) -> Protocols:
    """Read the protocol of each run from its folder."""
    return Protocols(
        tuple(read_protocol(folder.read_record(), folder.read_environment()) for folder in compared.folders)
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)

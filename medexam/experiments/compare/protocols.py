"""`medexam compare --protocol`: where the protocols of runs differ, so that numbers that differ are explained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.experiments.store.protocol import NOT_TOLD, Protocol, read_protocol
from medexam.tables import Table


@dataclass(frozen=True)
class Protocols(ComparisonSection):
    """The protocol of each run, the baseline first; a setting may be both `differing` and `not_told`."""

    protocols: tuple[Protocol, ...]
    differing: list[str]
    """What at least two runs state differently, in the protocol's order."""
    not_told: list[str]
    """What some run does not state."""
    name = "protocol"

    def tables(self, names: Sequence[str]) -> list[Table]:
        """Build a row for each setting that differs or that some run does not tell."""
        settings = [setting for setting in self.protocols[0] if setting in {*self.differing, *self.not_told}]
        rows = tuple((setting, *(protocol[setting] for protocol in self.protocols)) for setting in settings)
        caption = "Equal digests are equal texts. An imported run shows what its harness's files state."
        table = Table(
            "Where the protocols differ", ("What", *names), rows, text_columns=1 + len(names), caption=caption
        )
        return [table] if rows else []

    def sentences(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Write what differs, what is not told, and what is the same."""
        same = [setting for setting in self.protocols[0] if setting not in {*self.differing, *self.not_told}]
        remarks = [] if self.differing or self.not_told else ["The runs' protocols do not differ."]
        if self.differing:
            remarks.append(f"The runs differ in {', '.join(self.differing)}: any of these may explain a difference.")
        if self.not_told:
            remarks.append(f"Not stated by every run: {', '.join(self.not_told)}.")
        return [*remarks, f"The same in all runs: {', '.join(same)}."] if same else remarks

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the protocol of each run, what differs, and what is not told."""
        runs = {key: dict(protocol) for key, protocol in zip(keys, self.protocols, strict=True)}
        return {"runs": runs, "differing": self.differing, "not_told": self.not_told}


def find_protocols(compared: ComparisonScope) -> Protocols:
    """Read the protocol of each run from its folder."""
    protocols = tuple(read_protocol(folder.read_record(), folder.read_environment()) for folder in compared.folders)
    stated = {setting: {protocol[setting] for protocol in protocols} for setting in protocols[0]}
    differing = [setting for setting, texts in stated.items() if len(texts - {NOT_TOLD}) > 1]
    return Protocols(protocols, differing, [setting for setting, texts in stated.items() if NOT_TOLD in texts])

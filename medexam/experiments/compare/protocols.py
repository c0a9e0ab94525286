"""`medexam compare --protocol`: where the protocols of runs differ, so that numbers that differ are explained."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.experiments.store.protocol import NOT_TOLD, Protocol, read_protocol
from medexam.tables import Captioned, Table


@dataclass(frozen=True)
class Protocols(ComparisonSection):
    """The protocol of each run, the baseline first."""

    protocols: tuple[Protocol, ...]
    name = "protocol"

    @cached_property
    def verdicts(self) -> dict[str, list[str]]:
        """What at least two runs state differently, what some run does not state, and what is the same in all.

        In the protocol's order; a setting may be `differing` and `not_told`.
        """
        verdicts: dict[str, list[str]] = {"differing": [], "not_told": [], "same": []}
        for setting in self.protocols[0]:
            stated = {protocol[setting] for protocol in self.protocols}
            differs, is_untold = len(stated - {NOT_TOLD}) > 1, NOT_TOLD in stated
            for name, holds in (("differing", differs), ("not_told", is_untold), ("same", not (differs or is_untold))):
                if holds:
                    verdicts[name].append(setting)
        return verdicts

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build a row for each setting that differs or that some run does not tell."""
        settings = [setting for setting in self.protocols[0] if setting not in self.verdicts["same"]]
        if not settings:
            return []
        rows = tuple((setting, *(protocol[setting] for protocol in self.protocols)) for setting in settings)
        caption = "Equal digests are equal texts. An imported run shows what its harness's files state."
        return [
            (Table("Where the protocols differ", ("What", *names), rows, text_columns=1 + len(self.protocols)), caption)
        ]

    def sentences(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Write what differs, what is not told, and what is the same."""
        differing, untold, same = (", ".join(settings) for settings in self.verdicts.values())
        remarks = [] if differing or untold else ["The runs' protocols do not differ."]
        if differing:
            remarks.append(f"The runs differ in {differing}: any of these may explain a difference.")
        if untold:
            remarks.append(f"Not stated by every run: {untold}.")
        if same:
            remarks.append(f"The same in all runs: {same}.")
        return remarks

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the protocol of each run, what differs, and what is not told."""
        runs = {key: dict(protocol) for key, protocol in zip(keys, self.protocols, strict=True)}
        return {"runs": runs, "differing": self.verdicts["differing"], "not_told": self.verdicts["not_told"]}


def find_protocols(compared: ComparisonScope) -> Protocols:
    """Read the protocol of each run from its folder."""
    return Protocols(
        tuple(read_protocol(folder.read_record(), folder.read_environment()) for folder in compared.folders)
    )

"""`medexam compare --protocol`: where the protocols of runs differ, so that numbers that differ are explained."""

from collections.abc import Sequence

from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.experiments.store.protocol import NOT_TOLD, Protocol, read_protocol
from medexam.tables import Table


def find_protocols(compared: ComparisonScope) -> ComparisonSection:
    """Say what at least two runs state differently, what some run does not state, and what is the same in all."""
    protocols = [read_protocol(folder.read_record(), folder.read_environment()) for folder in compared.folders]
    stated = {setting: {protocol[setting] for protocol in protocols} for setting in protocols[0]}
    differing = [setting for setting, texts in stated.items() if len(texts - {NOT_TOLD}) > 1]
    untold = [setting for setting, texts in stated.items() if NOT_TOLD in texts]
    same = [setting for setting in stated if setting not in {*differing, *untold}]
    remarks = [] if differing or untold else ["The runs' protocols do not differ."]
    if differing:
        remarks.append(f"The runs differ in {', '.join(differing)}: any of these may explain a difference.")
    if untold:
        remarks.append(f"Not stated by every run: {', '.join(untold)}.")
    if same:
        remarks.append(f"The same in all runs: {', '.join(same)}.")
    shown = [{name: text for name, text in each.items() if name not in same} for each in protocols]
    table = protocol_table("Where the protocols differ", compared.names, shown)
    runs = {key: dict(protocol) for key, protocol in zip(compared.run_keys, protocols, strict=True)}
    document = {"runs": runs, "differing": differing, "not_told": untold}
    return ComparisonSection("protocol", remarks, document, [table] if len(same) < len(stated) else [])


def protocol_table(title: str, names: Sequence[str], protocols: Sequence[Protocol]) -> Table:
    """Show protocols side by side, a row a thing that can change a number."""
    rows = tuple((setting, *(each[setting] for each in protocols)) for setting in protocols[0])
    caption = "Equal digests are equal texts. An imported run shows what its harness's files state."
    headers = ("What", *names)
    return Table(title, headers, rows, text_columns=len(headers), caption=caption)

"""What the companions that ship add to the core: the core reads these tables and imports no companion.

An installed package adds its parts by entry points of the same groups. These stand here, so that a help imports nothing
and reads no metadata, and an installation whose metadata is older than its sources lacks none of them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class CompanionCommand(NamedTuple):
    """Where a command is, and where and how the help lists it."""

    target: str
    """`package.module:Name` of a function or a `typer.Typer`, as an entry point's value."""
    after: str
    """The command that it follows in the help, with the groups before it."""
    line: str = ""
    """The first line of its own help; empty for a command of a group, whose help imports it."""


SHIPPED_COMMANDS: Mapping[str, CompanionCommand] = MappingProxyType(
    {
        "import": CompanionCommand(
            "medexam.companions.harnesses.commands:import_results",
            "board",
            "Make runs of the results of other harnesses; asks no model.",
        ),
        "export": CompanionCommand(
            "medexam.companions.harnesses.commands:export",
            "import",
            "Write runs as files of lm-evaluation-harness, Inspect or Every Eval Ever, or for the hub; sends nothing.",
        ),
        "serve": CompanionCommand(
            "medexam.companions.serving.commands:serve",
            "schema",
            "Start vLLM, wait until it is healthy, and stop it on Ctrl-C. Words after `--` go to vLLM as they are.",
        ),
        "data build": CompanionCommand("medexam.companions.booklets.commands:build", "data init"),
        "data translate": CompanionCommand("medexam.companions.translation.translate_command:translate", "data build"),
        "data quality": CompanionCommand("medexam.companions.translation.quality_command:quality", "data translate"),
        "data variants": CompanionCommand("medexam.companions.finetuning.variants_command:variants", "data quality"),
        "index map": CompanionCommand("medexam.companions.corpus_map.commands:draw", "index info"),
        "reproduce": CompanionCommand(
            "medexam.companions.papers.commands:reproduce",
            "export",
            "Make a table or figure of a paper again, beside the printed one.",
        ),
        "finetune": CompanionCommand(
            "medexam.companions.finetuning.commands:finetune",
            "optimize",
            "Fine-tune an encoder on spans, for the program `span_reader`.",
        ),
        "finetune-grid": CompanionCommand(
            "medexam.companions.finetuning.commands:finetune_grid",
            "finetune",
            "Fine-tune encoders in every training and variant of a grid, or continue an interrupted grid.",
        ),
        "audit": CompanionCommand(
            "medexam.companions.audit.commands:app",
            "index",
            "Have people or a model judge answers, and compare their marks.",
        ),
        "cliniqlink": CompanionCommand(
            "medexam.companions.cliniqlink.commands:app", "audit", "Score, rank and run submissions to ClinIQLink."
        ),
    }
)
"""Name of a command, groups before it -> the command."""
SHIPPED_PARTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "medexam.commands": {name: command.target for name, command in SHIPPED_COMMANDS.items()},
        "medexam.servers": {
            "batches": "medexam.companions.serving.run_batch:VLLMBatches",
            "cluster": "medexam.companions.serving.cluster_doctor:examine_nodes",
            "driver": "medexam.companions.serving.launch.gpus:find_driver",
            "gpus": "medexam.companions.serving.launch.gpus:find_gpus",
            "model": "medexam.companions.serving.launch.profile:with_profile",
            "profile": "medexam.companions.serving.launch.profile:load_profile",
            "start": "medexam.companions.serving.launch.own_servers:start_servers",
        },
        "medexam.local_readers": {
            "entailment": "medexam.companions.readers.entailment:ENTAILMENT",
            "spans": "medexam.companions.readers.spans:SPANS",
        },
        "medexam.programs": {"translate": "medexam.companions.translation.program:Translate"},
        "medexam.layouts": {
            "check": "medexam.companions.papers.paper:load_paper",
            "print": "medexam.companions.papers.layout:print_layout",
        },
        "medexam.benchmarks": {
            "cliniqlink": "medexam.companions.cliniqlink.benchmark:ClinIQLink",
            "translation": "medexam.companions.translation.benchmark:Translation",
        },
        "medexam.readers": {
            "casimedicos": "medexam.companions.casimedicos.exam:read_casimedicos_exam",
            "casimedicos_spans": "medexam.companions.casimedicos.extraction:read_casimedicos_tasks",
            "cliniqlink": "medexam.companions.cliniqlink.reading:read_cliniqlink",
        },
        "medexam.explanations": {
            "casimedicos_spans": "medexam.companions.casimedicos.statistics:compute_explanation_statistics"
        },
        "medexam.comparisons": {
            "contamination": "medexam.companions.contamination.section:make_finder",
            "item_response": "medexam.companions.item_response.questions:find_item_response",
            "strengths": "medexam.companions.item_response.strengths:find_strengths",
            "subset": "medexam.companions.item_response.subset:find_subset",
        },
        "medexam.importers": {"results": "medexam.companions.harnesses.imports.importing:Importer"},
    }
)
"""Group of entry points -> name of a part -> `package.module:Name`."""

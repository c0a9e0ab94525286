"""The words of an optimization's best program in MLflow's prompt registry, with the trial that found them.

Of the version the program's demonstrations are part too, also those that belong to a question.
"""

import json
from typing import Any

from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.store.work_folder import name_part
from medexam.experiments.track.prompts import Messages, PromptVersion, program_prompts, register
from medexam.programs.loading import PROGRAM, predictor_states, read_state


def register_prompts(client: Any, optimization: Optimization, run_id: str, experiment_id: str) -> list[str]:
    """Register the best program's prompts and link them to the run. Return their `name/version`.

    Nothing if there is no best program or the store has no prompt registry.
    """
    best, cell = optimization.best, optimization.cell
    if best is None or not (optimization.folder.path / PROGRAM).exists():
        return []
    state = read_state(optimization.folder.path)
    parts = predictor_states(state, of_module=cell.program.module_adapter is not None)
    demos = json.dumps({name: parts[name]["demos"] for name in sorted(parts)}, ensure_ascii=False)
    change = f"{optimization.optimizer.kind}, trial {best.number} ({best.name})"
    tags = {
        "medexam.program_digest": best.digest,
        "medexam.optimization": optimization.folder.name,
        "medexam.model": cell.model.label,
    }
    prompts = {
        name: PromptVersion(messages, change, beside=demos, elsewhere=PROGRAM, tags=tags)
        for name, messages in prompt_templates(optimization).items()
    }
    return register(client, prompts, run_id, experiment_id)


def prompt_templates(optimization: Optimization) -> dict[str, Messages]:
    """Build the messages of each prompt by name; a single predictor's prompt is named after the program's kind."""
    cell = optimization.cell
    loaded = cell.program.model_copy(update={"load": optimization.folder.path / PROGRAM})
    return program_prompts(cell.model_copy(update={"program": loaded}), name_part(cell.program.kind.rpartition(":")[2]))

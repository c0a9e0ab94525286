"""Models, and many questions in flight: engines, messages, replies, the scheduler and what it may spend."""

from medexam.experiments.run.executor import RunObserver
from medexam.experiments.run.spending import Stop
from medexam.library_logging import quiet_transformers
from medexam.model_calls import Dialogue, Generation, Sampling, is_cut
from medexam.programs.base import AskingProgram, Call, Steps
from medexam.programs.program_output import ProgramOutput
from medexam.serve.batches.batch_folder import Batch
from medexam.serve.naming import known_model, with_served_name
from medexam.signatures.lenient import read_leniently
from medexam.signatures.single_call import (
    Fields,
    Signature,
    SingleCallAdapter,
)
from medexam.signatures.word_files import validate_words

__all__ = [
    "AskingProgram",
    "Batch",
    "Call",
    "Dialogue",
    "Fields",
    "Generation",
    "ProgramOutput",
    "RunObserver",
    "Sampling",
    "Signature",
    "SingleCallAdapter",
    "Steps",
    "Stop",
    "is_cut",
    "known_model",
    "quiet_transformers",
    "read_leniently",
    "validate_words",
    "with_served_name",
]

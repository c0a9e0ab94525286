"""Models, and many questions in flight: engines, messages, replies, the scheduler and what it may spend."""

from medexam.experiments.run.executor import RunObserver
from medexam.experiments.run.language_model import build_lm
from medexam.experiments.run.scheduler import QuestionObserver, Scheduler, Work
from medexam.experiments.run.signals import run_interruptibly
from medexam.experiments.run.spending import Spending, Stop
from medexam.library_logging import quiet_dspy, quiet_transformers
from medexam.model_calls import is_cut
from medexam.model_identity import Answerer
from medexam.programs import ProgramOutput
from medexam.serve import Engine, build_engine
from medexam.serve.batches.batch_folder import Batch
from medexam.serve.contract import PLAIN
from medexam.serve.naming import known_model, with_served_name
from medexam.signatures.direct import in_bulk
from medexam.signatures.lenient import read_leniently
from medexam.signatures.single_call import (
    Fields,
    Signature,
    SingleCallAdapter,
    chat_request,
    read_generation,
    read_reply_text,
)
from medexam.signatures.word_files import validate_words

__all__ = [
    "PLAIN",
    "Answerer",
    "Batch",
    "Engine",
    "Fields",
    "ProgramOutput",
    "QuestionObserver",
    "RunObserver",
    "Scheduler",
    "Signature",
    "SingleCallAdapter",
    "Spending",
    "Stop",
    "Work",
    "build_engine",
    "build_lm",
    "chat_request",
    "in_bulk",
    "is_cut",
    "known_model",
    "quiet_dspy",
    "quiet_transformers",
    "read_generation",
    "read_leniently",
    "read_reply_text",
    "run_interruptibly",
    "validate_words",
    "with_served_name",
]

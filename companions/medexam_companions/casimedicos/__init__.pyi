from .documents import read_casimedicos as read_casimedicos
from .finetuning.cells import FinetuningSpec as FinetuningSpec
from .finetuning.cells import load_finetuning as load_finetuning
from .finetuning.cells import pending_stages as pending_stages
from .finetuning.cells import plan_cells as plan_cells
from .finetuning.training import learn as learn
from .statistics import compute_explanation_statistics as compute_explanation_statistics
from .variants import write_variants as write_variants

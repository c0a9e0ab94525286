from .bradley_terry import compare_strengths as compare_strengths
from .fitting import fit_items as fit_items
from .item_quality import judge_items as judge_items
from .item_quality import strong_runs as strong_runs
from .item_quality import together as together
from .subset_choice import measure_subsets as measure_subsets

from .exports.formats import export_runs as export_runs
from .imports.importing import Importer as Importer
from .imports.reading import read_results as read_results
from .imports.samples import ResultsError as ResultsError
from .imports.submission import is_submission as is_submission
from .imports.submission import output_paths as output_paths
from .result_files import take_files as take_files

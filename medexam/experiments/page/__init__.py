"""The page: stored runs as one HTML file that opens from the disk, with tables, pictures and every single question."""

from medexam.experiments.page.document import PageSize, write_page
from medexam.experiments.page.reading import ReadRuns, read_runs

__all__ = ["PageSize", "ReadRuns", "read_runs", "write_page"]

"""The page: stored runs as one HTML file that opens from the disk, with tables, pictures and every single question."""

from medexam.experiments.report.page.document import write_page

__all__ = ["write_page"]

"""The page: stored runs as one HTML file that opens from the disk, with tables, pictures and every single question."""

from medexam.experiments.report.page.document import PageSize, write_page

__all__ = ["PageSize", "write_page"]

"""Exam booklets as the Ministry publishes them, made into tables of exams."""

from medexam.companions.booklets.building import BuildRequest, Built, build_exam
from medexam.companions.booklets.report import Applied, BuildFinding, BuildReport, LineEnd

__all__ = ["Applied", "BuildFinding", "BuildReport", "BuildRequest", "Built", "LineEnd", "build_exam"]

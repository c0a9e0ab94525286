"""The leaderboard: models over several benchmarks, from stored runs."""

from medexam.experiments.report.leaderboard.board import Leaderboard, make_leaderboard

__all__ = ["Leaderboard", "make_leaderboard"]

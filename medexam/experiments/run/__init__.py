"""Carrying out a plan: engines, the scheduler, signals."""

"""Reaching a model: the engines, and one way to build them."""

from medexam.serve.build import build_engine
from medexam.serve.contract import CHOICE, Engine, EngineInfo
from medexam.serve.engines.scripted import ScriptedEngine

__all__ = ["CHOICE", "Engine", "EngineInfo", "ScriptedEngine", "build_engine"]

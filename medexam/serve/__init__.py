"""Reaching a model: the engines, and one way to build them.

A name is loaded when it is first used: engines need DSPy, and starting a server does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from medexam.serve.build import build_engine
    from medexam.serve.contract import CHOICE, Engine, EngineInfo
    from medexam.serve.engines.scripted import ScriptedEngine

__all__ = ["CHOICE", "Engine", "EngineInfo", "ScriptedEngine", "build_engine"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = {"build_engine": "build", "ScriptedEngine": "engines.scripted"}
    return getattr(import_module(f"{__name__}.{homes.get(name, 'contract')}"), name)

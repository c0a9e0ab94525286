"""Servers of models: the registry that runs find them in, their keys, and what of this machine they depend on."""

from medexam.serve.discovery.registry import RegisteredServer, Registry, local_registry
from medexam.serve.local_model.dtypes import BFLOAT16, processor_features
from medexam.serve.local_model.weights import SMOLLM2, smollm2_folder
from medexam.serve.network.endpoints import read_api_key
from medexam.serve.network.keys import kept_key, make_key, read_key_variable, write_key

__all__ = [
    "BFLOAT16",
    "SMOLLM2",
    "RegisteredServer",
    "Registry",
    "kept_key",
    "local_registry",
    "make_key",
    "processor_features",
    "read_api_key",
    "read_key_variable",
    "smollm2_folder",
    "write_key",
]

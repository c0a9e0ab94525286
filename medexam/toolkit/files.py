"""Files and folders: read with limits, written whole or not at all, private where people are named in them."""

from medexam.experiments.store.work_folder import WorkFolder
from medexam.files import make_private_folder, whole_folder
from medexam.frozen_model import FrozenModel
from medexam.inputs import UnreadableError, decode, read_regular

__all__ = [
    "FrozenModel",
    "UnreadableError",
    "WorkFolder",
    "decode",
    "make_private_folder",
    "read_regular",
    "whole_folder",
]

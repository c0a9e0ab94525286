"""What a YAML says, checked, and the digest of it."""

from medexam.specs import CellSpec, DatasetSpec
from medexam.specs.identity import IDENTITY_SCHEMA, digest, identity
from medexam.specs.programs.imported import Harness, ImportedSpec

__all__ = ["IDENTITY_SCHEMA", "CellSpec", "DatasetSpec", "Harness", "ImportedSpec", "digest", "identity"]

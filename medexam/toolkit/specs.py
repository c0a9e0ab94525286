"""What a YAML says, checked, and the digest of it."""

from medexam.specs import CellSpec, DatasetSpec, parse_yaml
from medexam.specs.catalogue import BUILT, TERMS, check_language
from medexam.specs.identity import IDENTITY_SCHEMA, digest, identity
from medexam.specs.programs.imported import Harness, ImportedSpec

__all__ = [
    "BUILT",
    "IDENTITY_SCHEMA",
    "TERMS",
    "CellSpec",
    "DatasetSpec",
    "Harness",
    "ImportedSpec",
    "check_language",
    "digest",
    "identity",
    "parse_yaml",
]

"""What a YAML says, checked, and the digest of it."""

from medexam.specs import CellSpec, DatasetSpec, ModelSpec, RetrieverSpec, load_document, parse_overrides, parse_yaml
from medexam.specs.base import Spec
from medexam.specs.catalogue import BUILT, CATALOGUE, SAMPLED, TERMS, check_language
from medexam.specs.dataset import Alteration, Variant
from medexam.specs.identity import IDENTITY_SCHEMA, build_identity, differing_keys, digest
from medexam.specs.loading import shipped_with
from medexam.specs.matrix import build_cells
from medexam.specs.programs.controls import Harness, ImportedSpec
from medexam.specs.validation import validate

__all__ = [
    "BUILT",
    "CATALOGUE",
    "IDENTITY_SCHEMA",
    "SAMPLED",
    "TERMS",
    "Alteration",
    "CellSpec",
    "DatasetSpec",
    "Harness",
    "ImportedSpec",
    "ModelSpec",
    "RetrieverSpec",
    "Spec",
    "Variant",
    "build_cells",
    "build_identity",
    "check_language",
    "differing_keys",
    "digest",
    "load_document",
    "parse_overrides",
    "parse_yaml",
    "shipped_with",
    "validate",
]

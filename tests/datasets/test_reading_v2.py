"""HEAD-QA v2's eight fields from Parquet and JSON Lines."""

import gc

import pyarrow as pa
import pytest
from conftest_paths import write_jsonl, write_parquet

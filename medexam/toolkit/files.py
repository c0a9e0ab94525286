"""Files and folders: read with limits, written whole or not at all, private where people are named in them."""

from medexam.experiments.store.work_folder import WorkFolder, name_part
from medexam.files import (
    cache_dir,
    file_name,
    host_name,
    make_private_folder,
    whole_file,
    whole_folder,
    write_new,
    write_whole,
    written_by_library,
)
from medexam.fingerprints import fingerprint_folder, resolve_commit
from medexam.frozen_model import FrozenModel
from medexam.gc_pause import gc_paused
from medexam.inputs import (
    LONGEST_TEXT,
    UnreadableError,
    check_archive,
    check_length,
    decode,
    first_line,
    open_parquet,
    open_regular,
    open_unpacked,
    parquet_rows,
    parse_json,
    read_json,
    read_regular,
)

__all__ = [
    "LONGEST_TEXT",
    "FrozenModel",
    "UnreadableError",
    "WorkFolder",
    "cache_dir",
    "check_archive",
    "check_length",
    "decode",
    "file_name",
    "fingerprint_folder",
    "first_line",
    "gc_paused",
    "host_name",
    "make_private_folder",
    "name_part",
    "open_parquet",
    "open_regular",
    "open_unpacked",
    "parquet_rows",
    "parse_json",
    "read_json",
    "read_regular",
    "resolve_commit",
    "whole_file",
    "whole_folder",
    "write_new",
    "write_whole",
    "written_by_library",
]

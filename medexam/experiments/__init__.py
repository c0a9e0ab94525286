"""From a spec to answered, scored and tracked runs: floor 4."""

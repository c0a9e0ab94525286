"""Programs that a spec composes of steps: floor 3, above the programs that steps ask."""

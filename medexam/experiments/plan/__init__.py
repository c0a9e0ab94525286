"""From a spec to its cells, and to what each of them still has to ask."""

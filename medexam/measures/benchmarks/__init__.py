"""How the items of each data set are loaded, scored and shown."""

"""MLflow's copy of stored runs."""

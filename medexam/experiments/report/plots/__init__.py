"""Pictures of stored runs, and what else is drawn in their look."""

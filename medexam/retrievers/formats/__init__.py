"""Files of passages other than JSON Lines and Parquet: floor 2."""

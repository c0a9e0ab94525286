"""A picture of an index: its passages on a plane by source, and an exam's questions among them."""

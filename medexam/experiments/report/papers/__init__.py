"""The human baseline: what people scored in the same exams, as boards and papers publish it."""

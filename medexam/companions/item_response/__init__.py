"""Many runs among each other: their strengths, the questions that tell them apart, and those that stand for all."""

"""Results that other harnesses wrote, made into run folders; no model is asked."""

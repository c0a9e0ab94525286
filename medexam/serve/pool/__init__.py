"""Several servers as one: which is asked, how much at once, and which prompts travel together."""

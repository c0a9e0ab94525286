"""Finding out what servers are worth: what they honour, how fast they are, whether replicas agree."""

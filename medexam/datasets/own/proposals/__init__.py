"""How a file of questions may be read: what `medexam data init` proposes and asks."""

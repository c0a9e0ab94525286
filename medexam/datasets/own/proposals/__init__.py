"""How a file of questions may be read: what `medexam init` proposes and asks."""

"""Starting vLLM servers: which model on which cards, by which command, watched until they are stopped."""

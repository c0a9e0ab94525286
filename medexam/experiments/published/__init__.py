"""What papers publish: data files, each figure with its source, read by `medexam.experiments.published_figures`."""

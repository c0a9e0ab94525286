"""The words that programs ask with: data files, read by `medexam.signatures.word_files`."""

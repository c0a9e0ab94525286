"""`medexam finetune` and `medexam finetune-grid`."""

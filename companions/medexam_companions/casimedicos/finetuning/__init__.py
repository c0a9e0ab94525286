"""`medexam finetune`: encoders learn to find spans; folders come out that a span reader loads."""

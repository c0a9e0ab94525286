"""`medexam finetune`: an encoder learns to find spans; a folder comes out that a span reader loads."""

"""A small language model with SmolLM2's tokenizer and chat template, and seeded random weights.

It is for tests of what surrounds a model: it is loaded in a moment, and each of its answers takes a millisecond. What
it says means nothing, but differs from prompt to prompt. What a capable model does is tested with SmolLM2.
"""

from pathlib import Path

from medexam.serve import smollm2_folder


def save_tiny_llama(folder: Path) -> Path:
    """The folder of a Llama of two layers, 0.8 million weights, nearly all of them embeddings of SmolLM2's tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    source = smollm2_folder()
    known = LlamaConfig.from_pretrained(source)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=known.vocab_size,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=known.max_position_embeddings,
        tie_word_embeddings=True,
        initializer_range=0.5,
        bos_token_id=known.bos_token_id,
        eos_token_id=known.eos_token_id,
        pad_token_id=known.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    for path in source.iterdir():
        if not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)
    return folder

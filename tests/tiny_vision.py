"""A vision model of Idefics3's architecture, with seeded random weights: it sees, and says nothing that means anything.

vLLM reads it as it reads SmolVLM's larger siblings: a picture becomes four tokens, and other pictures other replies.
"""

from pathlib import Path

_TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}]{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for part in m['content'] %}{{ part['text'] if part['type'] == 'text' else '<image>' }}{% endfor %}{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
_SIDE = 64


def save_vision_model(folder: Path) -> Path:
    """The folder with weights, byte tokenizer, chat template and image processor."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
        LlamaConfig,
        PreTrainedTokenizerFast,
    )

    marks = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
    words = ["<pad>", "<s>", "</s>", *marks, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytes_only = Tokenizer(models.BPE(vocab={word: number for number, word in enumerate(words)}, merges=[]))
    bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_only.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytes_only,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens=marks,
        chat_template=_TEMPLATE,
    )
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = LlamaConfig(
        **(size | {"hidden_size": 128}),
        vocab_size=len(words) + -len(words) % 64,
        max_position_embeddings=4096,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    config = Idefics3Config(
        vision_config={**size, "image_size": _SIDE, "patch_size": 16},
        text_config=text,
        image_token_id=words.index("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )
    Idefics3ForConditionalGeneration(config).to(torch.float32).save_pretrained(folder)
    side = {"longest_edge": _SIDE}
    images = Idefics3ImageProcessorPil(size=side, max_image_size=side, do_image_splitting=False)
    Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=_TEMPLATE).save_pretrained(folder)
    return folder

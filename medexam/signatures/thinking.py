"""The thinking of reasoning models, which is no part of the answer: blocks such as `<think>` to `</think>`, or the
channel `analysis` of gpt-oss.

It is told apart as vLLM's parsers `qwen3`, `deepseek_r1`, `mistral` and of gpt-oss's format do, except that a reply
without any mark has no thinking: those take it for thinking that was cut off, since they know their model.
"""

import re

from medexam.model_calls import THINKING_CLOSING, THINKING_OPENING, is_cut

_BLOCKS = (
    (THINKING_OPENING, THINKING_CLOSING),  # Qwen 3, DeepSeek-R1
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<unused94>", "<unused95>"),  # MedGemma
    ("<|channel>thought", "<channel|>"),  # Gemma 4
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),  # Kimi
)
_OPENINGS, _CLOSINGS = ("|".join(map(re.escape, marks)) for marks in zip(*_BLOCKS, strict=True))
_MARK = re.compile(rf"(?P<opening>{_OPENINGS})|(?P<closing>{_CLOSINGS})", re.IGNORECASE)
_MEDGEMMA = re.compile(r"(?<=<unused94>)thought\s*\n")
_CHANNEL = re.compile(
    r"<\|channel\|>(?P<head>\s*\w+(?:[^<\n]*(?=<\|))?)(?:<\|constrain\|>[^<]*)?(?:<\|message\|>)?(?P<text>.*?)"
    r"(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)

_TURN_ENDS = (
    *("<|im_end|>", "<|im_start|>", "<|endoftext|>"),  # ChatML: Qwen, SmolLM
    *("<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end_of_text|>", "<|begin_of_text|>"),  # Llama 3
    *("<end_of_turn>", "<start_of_turn>", "<eos>"),  # Gemma
    *("</s>", "[INST]", "[/INST]"),  # Llama 2, Mistral
    *("<|end|>", "<|user|>", "<|system|>", "<|assistant|>"),  # Phi, Zephyr
    *("<|return|>", "<|start|>"),  # gpt-oss
    *("<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>"),  # Command R
    *("<\uff5cend\u2581of\u2581sentence\uff5c>", "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"),  # DeepSeek
)
_TURN_END = re.compile("|".join(map(re.escape, _TURN_ENDS)) + r"|\n\s*(?:#+\s*)?(?:User|Human|Instruction)\s*:")
_ASSISTANT = re.compile(
    r"\s*(?:(?:<\|im_start\|>|<start_of_turn>|<\|start\|>)\s*(?:assistant|model)\b"
    r"|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>|<\|assistant\|>|<\|START_OF_TURN_TOKEN\|>"
    r"|<\uff5cAssistant\uff5c>|\[/INST\]|<\|begin_of_text\|>)\s*"
)


def split_thinking(reply: str) -> tuple[str | None, str]:
    """Split a reply into (thinking, what was said after it); thinking is None when there is none.

    Every block is thinking, wherever it stands. Chat templates that open the block themselves leave a reply with
    `</think>` alone; everything before it is thinking. A block that was never closed is thinking to the end: such a
    reply was cut off before it said anything.
    """
    thinking: list[str] = []
    content: list[str] = []
    # gpt-oss's channels; what is called is neither thought nor said. A commentary is said if nothing is final, and vLLM
    # too takes one before the final message for thinking.
    if channels := [(*one["head"].strip().partition(" ")[::2], one["text"]) for one in _CHANNEL.finditer(reply)]:
        is_final = any(name == "final" for name, *_ in channels)
        for name, recipient, text in channels:
            if name == "final" or (name == "commentary" and not recipient and not is_final):
                content.append(text)
            elif name == "analysis" or (name == "commentary" and not recipient):
                thinking.append(text)
        return "\n".join(thinking).strip() or None, "".join(content).strip()
    if _MARK.search(reply) is None:
        return None, reply
    place, inside = 0, False
    reply = _MEDGEMMA.sub("", reply)
    for mark in _MARK.finditer(reply):
        (thinking if inside else content).append(reply[place : mark.start()])
        place = mark.end()
        if mark["closing"] and not inside:
            thinking, content = [*thinking, *content], []
        inside = mark["opening"] is not None
    (thinking if inside else content).append(reply[place:])
    parts = (part.strip() for part in thinking)
    return "\n".join(filter(None, parts)) or None, "".join(content).lstrip()


def is_cut_in_thinking(reply: str | None, finish_reason: str | None) -> bool:
    """Return whether a reply ended at its budget before it said anything but thoughts."""
    if not reply or not is_cut(finish_reason):
        return False
    thinking, content = split_thinking(reply)
    return thinking is not None and not content.strip()


def end_turn(text: str) -> str:
    """Return a reply up to the end of the assistant's turn: what follows are turns that the model invented.

    A mark that opens the assistant's own turn is left out.
    """
    if "<" not in text and "[" not in text and ":" not in text:
        return text
    while (opening := _ASSISTANT.match(text)) is not None and opening.end():
        text = text[opening.end() :]
    end = _TURN_END.search(text)
    return text if end is None else text[: end.start()]

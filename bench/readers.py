"""How long a reply is read, beside a trivial regular expression: `python bench/readers.py`.

Replies are of about 2,000 characters, with reasoning. The least of several repeats is printed, in microseconds of
processor time.
"""

import re
import time
from collections.abc import Callable

from medexam.signatures import parse_answer, read_leniently

OPTIONS = dict(enumerate(["Insulin", "Glucagon", "Aldosterone", "Adrenaline"], start=1))
REASONING = {
    "English": "Steroid hormones derive from cholesterol; most are made in the adrenal cortex. Insulin and glucagon "
    "are peptides of the pancreas; they act at the membrane. Of the options, the first two cannot be steroids, and "
    "option 4 derives from tyrosine. ",
    "Spanish": "La aldosterona se sintetiza en la zona glomerular y regula el sodio en el túbulo distal. La insulina y "
    "el glucagón son péptidos; la adrenalina es una catecolamina. Por eso las opciones 1 y 2 no pueden ser. ",
    "'answer' in each sentence": "Let us see which answer is right for this one. ",
}
ENDS = {"the format": "{Answer: 3}", "a sentence": "The answer is 3.", "nothing": "I am not sure about it at all."}
TRIVIAL = re.compile(r"answer is \(?([1-9A-E])", re.IGNORECASE)


def measure(read: Callable[[], object]) -> float:
    times = []
    for _ in range(9):
        start = time.process_time()
        for _ in range(50):
            read()
        times.append((time.process_time() - start) / 50)
    return min(times) * 1e6


def read_both(reply: str) -> int | None:
    """Read as a run does."""
    strict = parse_answer(reply, OPTIONS, reasoned=True)
    return strict if strict is not None else read_leniently(reply, OPTIONS, reasoned=True)


for name, sentences in REASONING.items():
    for end, words in ENDS.items():
        body = (sentences * 50)[:1960]
        reply = f"{body[: body.rfind('. ') + 1]}\n\n{words}"
        taken = measure(lambda reply=reply: read_both(reply))
        print(
            f"{name}, then {end}: {taken:.0f} us; trivial {measure(lambda reply=reply: TRIVIAL.findall(reply)):.0f} us"
        )

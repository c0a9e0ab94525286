"""Tags and links in Markdown, outside of the blocks that show replies word for word."""

import re

TAG = re.compile(r"<[A-Za-z/!?]|\]\(")


def outside_of_blocks(text: str) -> str:
    return re.sub(r"(?m)^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL)

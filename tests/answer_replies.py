"""Replies that vary a little from the answer's form."""

VARIATIONS = (
    "{Answer: 3}",
    "<Answer: 3>",
    "[Answer: 3]",
    '{"answer": 3}',
    '{"Answer": "3"}',
    "{'answer': 3}",
    "{answer:3}",
    "{ANSWER : 3 }",
    "{ Answer:\n3 }",
    "{Answer: [3]}",
    "{Answer: 3.}",
    "{Answer 3}",
    "{Answer = 3}",
    "{“Answer”: 3}",
    "{{Answer: 3}}",
    "**{Answer: 3}**",
    '```json\n{"Answer": 3}\n```',
)
"""Each says 3."""

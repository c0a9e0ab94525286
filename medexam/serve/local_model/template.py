"""A model's chat template and tokenizer, read from its files on this machine.

transformers would do the same but takes seconds to import, with torch; a client of a distant server needs neither. Only
`tokenizer.json`, `tokenizer_config.json` and the template are read. The caller checks that the result equals the
server's. This module knows files and templates, no server.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from medexam.errors import InvalidRequestError
from medexam.files import read_json
from medexam.model_calls import ChatMessage

_REASONING = re.compile(r"think|reason|thought|analysis|channel", re.IGNORECASE)
"""Every template of a model that reasons has one of these: `<think>`, `reasoning_content`, `<|channel|>`."""
_SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token")


class LocalTemplate:
    """Renders and tokenises as the model's own files say."""

    def __init__(
        self, template: str, tokenizer: Any, special: dict[str, str], settings: Mapping[str, Any] | None = None
    ) -> None:
        """Compile the template; `settings` is what it is told beside the messages, such as `enable_thinking`."""
        self.template: str | None = hashlib.sha256(template.encode()).hexdigest()
        self.may_reason = may_reason(template)
        self._template = _environment().from_string(template)
        self._tokenizer = tokenizer
        # Beside what the template is given, its own functions, which jinja would put together anew for each dialogue.
        self._context = {**self._template.globals, **special, **(settings or {}), "add_generation_prompt": True}

    async def render(self, messages: Sequence[ChatMessage]) -> str:
        """Render the dialogue's text, open for the assistant's reply; raises `InvalidRequestError` if the template
        does.
        """
        try:
            context = self._template.new_context({**self._context, "messages": list(messages)}, shared=True)
            return "".join(self._template.root_render_func(context))
        except TemplateError as error:
            raise InvalidRequestError(f"the chat template refuses the messages: {error}") from error

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Tokenise the text; `special` adds the tokens that open every text, which the template writes itself."""
        return list(self._tokenizer.encode(text, add_special_tokens=special).ids)


def may_reason(template: str) -> bool:
    """Return whether a chat template has words for reasoning."""
    return _REASONING.search(template) is not None


def load_template(source: str, settings: Mapping[str, Any] | None = None) -> LocalTemplate | None:
    """Load the template of a local folder or of a model in the hub's cache; None unless all its files are here."""
    try:
        folder = Path(source) if Path(source).is_dir() else Path(snapshot_download(source, local_files_only=True))
        if not isinstance(config := read_json(folder / "tokenizer_config.json"), dict):
            return None
        own, template = folder / "chat_template.jinja", config.get("chat_template")
        if isinstance(template, list):  # a model may have several
            template = next((entry["template"] for entry in template if entry.get("name") == "default"), None)
        template = own.read_text(encoding="utf-8") if own.is_file() else template
        if not isinstance(template, str) or not template:
            return None
        tokens = {name: config[name] for name in _SPECIAL if config.get(name)}
        special = {name: str(token["content"] if isinstance(token, dict) else token) for name, token in tokens.items()}
        return LocalTemplate(template, Tokenizer.from_file(str(folder / "tokenizer.json")), special, settings)
    except (LocalEntryNotFoundError, HFValidationError, OSError, ValueError, TemplateError):
        return None
    except Exception as error:
        # The tokenizers library raises bare Exceptions for files it cannot read.
        if type(error) is Exception:
            return None
        raise


def _environment() -> Any:
    """Build what chat templates may rely on: the names and the whitespace rules that transformers gives them."""

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    return environment

"""Batches at a provider, by litellm's batch calls: upload the file, make the batch, poll it, and fetch its results.

Making a batch costs money, and a connection may be lost before the provider's reply is here. The file's id, kept before
the batch is made, tells then whether there is a batch of it already. This module knows files and statuses, not what is
asked.
"""

import asyncio
import logging
from functools import partial
from typing import Any

from medexam.errors import EngineError, InvalidRequestError
from medexam.serve.engines.litellm_calls import call_in_thread
from medexam.serve.network.retry import CURABLE, ask_again
from medexam_companions.batches.batch_folder import URL, Batch

FIRST_POLL_S = 1.0
"""Before a batch is asked after first; the pauses grow from there."""
LONGEST_POLL_S = 60.0
"""A batch is asked after less and less often, at last after this."""
_SLOWER = 1.3
_ENDED = ("completed", "failed", "expired", "cancelled")
"""Statuses after which a batch does not change any more."""
_STEP_S = 60.0
"""What one step of a connection may take."""
_PAGE_SIZE = 100
_MESSAGE_CHARS = 400

_log = logging.getLogger(__name__)


class HostedBatches:
    """The batches of one provider."""

    resumes = True
    most_requests = 50_000
    most_bytes = 200 * 10**6

    def __init__(self, provider: str, model: str, connection: dict[str, Any], timeout_s: float) -> None:
        """Set up a provider's batches; `connection` holds the key, if it is not in the provider's usual variable."""
        self._provider = provider
        self._model = model
        self._connection = connection
        # A thread cannot be cancelled: it would hold the end of the process up for as long.
        self._timeout_s = min(timeout_s, _STEP_S)

    async def work(self, batch: Batch) -> None:
        """Submit the batch unless that was done, wait for its end, and keep its results."""
        if batch.record.batch_id is None:
            await self._submit(batch)
            _say(batch, "submitted")
        else:
            _say(batch, "taken up again")
        provider_batch = await self._wait(batch)
        if provider_batch.status == "failed":
            batch.end(b"", provider_batch.status)
            raise EngineError(
                f"batch {provider_batch.id} of {batch.record.requests:,} requests was refused as a whole: "
                f"{_reasons(provider_batch)}; no question of it was asked"
            )
        files = [
            await self._content(file_id)
            for file_id in (provider_batch.output_file_id, provider_batch.error_file_id)
            if file_id
        ]
        batch.end(b"\n".join(files), provider_batch.status)

    async def _submit(self, batch: Batch) -> None:
        if batch.record.file_id is None:
            name = f"{batch.requests.parent.parent.name}-{batch.requests.name}"
            upload = (name, await asyncio.to_thread(batch.requests.read_bytes))
            file = await ask_again(
                partial(self._call, "create_file", file=upload, purpose="batch"), timeout_s=self._timeout_s
            )
            batch.update(file_id=file.id)
            batch_id = None
        else:
            batch_id = await self._find(batch.record.file_id)
        if batch_id is None:
            batch_id = await self._create(str(batch.record.file_id))
        batch.update(batch_id=batch_id, status="submitted")

    async def _create(self, file_id: str) -> str:
        attempts = 0

        async def attempt() -> str:
            nonlocal attempts
            attempts += 1
            # The fault before may have hidden a batch that was made.
            if attempts > 1 and (batch_id := await self._find(file_id)) is not None:
                return batch_id
            provider_batch = await self._call(
                "create_batch", completion_window="24h", endpoint=URL, input_file_id=file_id, metadata={}
            )
            return str(provider_batch.id)

        return await ask_again(attempt, timeout_s=self._timeout_s)

    async def _find(self, file_id: str) -> str | None:
        """Find the id of the batch that was made of a file; None if none was."""
        cursor: dict[str, str] = {}
        while True:
            page = await ask_again(
                partial(self._call, "list_batches", limit=_PAGE_SIZE, **cursor), timeout_s=self._timeout_s
            )
            page_batches = list(page.data or ())
            for provider_batch in page_batches:
                if provider_batch.input_file_id == file_id:
                    return str(provider_batch.id)
            if not page_batches or not getattr(page, "has_more", False):
                return None
            cursor = {"after": page_batches[-1].id}

    async def _wait(self, batch: Batch) -> Any:
        """Wait for the batch and return it as it ended; a poll that fails is followed by the next as usual."""
        pause_s, failed = FIRST_POLL_S, False
        while True:
            try:
                provider_batch = await self._call("retrieve_batch", batch_id=batch.record.batch_id)
            except CURABLE as fault:
                if not failed:
                    _log.warning(
                        "medexam: warning: the state of batch %s cannot be read: %s", batch.record.batch_id, fault
                    )
                failed = True
            except InvalidRequestError as fault:
                raise EngineError(
                    f"batch {batch.record.batch_id} is not known to {self._provider} ({fault.message}); use the key "
                    f"that submitted it, or remove {batch.path} to submit its requests again"
                ) from fault
            else:
                failed = False
                if provider_batch.status != batch.record.status:
                    batch.update(status=provider_batch.status)
                if provider_batch.status in _ENDED:
                    return provider_batch
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * _SLOWER, LONGEST_POLL_S)

    async def _content(self, file_id: str) -> bytes:
        response = await ask_again(partial(self._call, "file_content", file_id=file_id), timeout_s=self._timeout_s)
        content: bytes = response.content
        return content.strip()

    async def _call(self, function: str, **fields: Any) -> Any:
        return await call_in_thread(
            function,
            self._model,
            timeout_s=self._timeout_s,
            custom_llm_provider=self._provider,
            **self._connection,
            **fields,
        )


def _say(batch: Batch, state: str) -> None:
    _log.warning(
        "medexam: batch %s of %s requests %s; it may take a day: Ctrl-C loses nothing, the same command continues",
        batch.record.batch_id,
        f"{batch.record.requests:,}",
        state,
    )


def _reasons(provider_batch: Any) -> str:
    messages = [str(error.message) for error in getattr(provider_batch.errors, "data", None) or () if error.message]
    return "; ".join(dict.fromkeys(messages))[:_MESSAGE_CHARS] or "no reason was given"

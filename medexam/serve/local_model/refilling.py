"""Free replies in a batch that is refilled: as soon as enough replies have ended, waiting prompts take their rows.

A batch that waits for its longest reply computes mostly rows that have ended. Here a row is taken by the next prompt.
Greedy replies do not depend on the rows beside them, and a drawn one has a random stream of its own. Only keys and
values that grow token by token can be moved between rows, so models with other caches write with `write_replies`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from medexam.serve.local_model.batches import BatchLimits, plan_batches
from medexam.serve.local_model.generation import (
    ReplyJob,
    WrittenReply,
    force_tokens,
    holds_stop,
    sampling_warpers,
    to_reply,
)
from medexam.serve.local_model.growing_cache import CachedRows, join_rows
from medexam.serve.local_model.model import LocalModel, is_out_of_memory
from medexam.serve.local_model.sampling import add_gumbel_noise, random_stream, seeds
from medexam.serve.local_model.thinking_budget import RowBudget

_REFILL = 4
"""One part in this many of the rows must be free before prompts are read into them: each time, all keys are copied."""


class ReplyTicket(Protocol):
    """A job and the caller who waits for its replies."""

    @property
    def job(self) -> ReplyJob:
        """What is to be written."""

    def claim(self) -> bool:
        """Take the job for good; False if its caller has given up."""

    def settle(self, replies: list[WrittenReply]) -> None:
        """Hand over the replies, one for each sample."""

    def fail(self, error: Exception) -> None:
        """Say why there are none."""


@dataclass
class _Row:
    """One reply that is being written."""

    ticket: ReplyTicket
    stream: Any
    """Its `torch.Generator`; None if the likeliest token is taken."""
    budget: RowBudget | None
    tokens: list[int] = field(default_factory=list)
    ended: bool = False
    siblings: "list[_Row]" = field(default_factory=list, repr=False)
    """The rows of all samples of its job, those that have left the batch included."""


class ReplyWriter:
    """Writes the replies of jobs that share their sampling and stop strings."""

    def __init__(self, model: LocalModel, reading: BatchLimits, writing: BatchLimits) -> None:
        self._model = model
        self._reading = reading
        self._writing = writing
        self._waiting: deque[ReplyTicket] = deque()
        self._rows: list[_Row] = []
        self._state: Any = None
        """Cache, mask and logits of the rows, as `join_rows` gives them."""

    def write(self, tickets: Iterable[ReplyTicket], bring_more: Callable[[], Sequence[ReplyTicket]]) -> None:
        """Settle every ticket, and those that `bring_more` brings whenever rows are free and none is waiting.

        All have the same `job.group`. A job that does not fit into the device's memory alone fails; several are
        begun anew, half as many at a time.
        """
        self._waiting.extend(tickets)
        with torch.inference_mode():
            while True:
                if not self._waiting and self._free() * _REFILL >= self._writing.rows:
                    self._waiting.extend(bring_more())
                try:
                    self._admit()
                    if not self._rows:
                        return
                    self._step()
                except Exception as error:
                    self._recover(error)

    def _free(self) -> int:
        return self._writing.rows - self._live()

    def _live(self) -> int:
        return len(self._live_places())

    def _admit(self) -> None:
        """Read waiting prompts into the rows that are free, if there are enough of them."""
        live = [row for row in self._rows if not row.ended]
        if live and (not self._waiting or self._free() * _REFILL < self._writing.rows):
            return
        count = len(live)
        longest = max((row.ticket.job.size[0] for row in live), default=0)
        tickets: list[ReplyTicket] = []
        while self._waiting:
            size, row_count = self._waiting[0].job.size
            rows, tokens = count + row_count, max(longest, size)
            if count and (rows > self._writing.rows or rows * tokens > self._writing.tokens):
                break
            ticket = self._waiting.popleft()
            if ticket.claim():
                tickets.append(ticket)
                count, longest = rows, tokens
        if tickets:
            self._refill(live, tickets)
        elif not live:
            self._rows, self._state = [], None

    def _refill(self, live: list[_Row], tickets: list[ReplyTicket]) -> None:
        places = self._live_places()
        batches = plan_batches(
            tickets, self._reading, size=lambda ticket: (len(ticket.job.prompt), 1), group=lambda _: None
        )
        # Before anything is computed, so that all of them are known if memory does not suffice.
        self._rows = live + [row for batch in batches for ticket in batch for row in self._new_rows(ticket)]
        parts = self._keep(places)
        self._state = join_rows([*parts, *(self._read(batch) for batch in batches)])

    def _keep(self, places: Sequence[int]) -> list[CachedRows]:
        """Return the state of the rows at these places, as a part of the next batch; none of no rows."""
        if not places:
            return []
        cache, mask, logits = self._state
        rows = CachedRows([(layer.keys, layer.values) for layer in cache.layers], mask, logits)
        self._state = None
        return [rows.select(places)]

    def _live_places(self) -> list[int]:
        return [place for place, row in enumerate(self._rows) if not row.ended]

    def _new_rows(self, ticket: ReplyTicket) -> list[_Row]:
        job, model = ticket.job, self._model
        draws = job.sampling.temperature > 0
        rows = [
            _Row(
                ticket,
                random_stream(seed, job.prompt, model.device) if draws else None,
                None if model.thinking_budget is None else RowBudget(model, model.thinking_budget, opened=job.opened),
            )
            for seed in seeds(job.seed, job.samples)
        ]
        for row in rows:
            row.siblings = rows
        return rows

    def _read(self, tickets: Sequence[ReplyTicket]) -> CachedRows:
        """Read prompts once each; a row for each of their samples."""
        cache, mask, logits = self._model.read([ticket.job.prompt for ticket in tickets])
        rows = CachedRows([(layer.keys, layer.values) for layer in cache.layers], mask, logits)
        samples = [place for place, ticket in enumerate(tickets) for _ in range(ticket.job.samples)]
        return rows.select(samples) if len(samples) > len(tickets) else rows

    def _step(self) -> None:
        """Write one token of each row, and compute the scores of the next."""
        cache, mask, logits = self._state
        places = self._live_places()
        rows = [self._rows[place] for place in places]
        choices = self._choose(rows, logits[places])
        for row, token in zip(rows, choices, strict=True):
            row.tokens.append(token)
        self._end(rows)
        if not self._live():
            return
        if self._live() * 2 <= len(self._rows) and not self._waiting:
            self._shrink()
            cache, mask, _ = self._state
        device = self._model.device
        tokens = torch.tensor([[row.tokens[-1]] for row in self._rows], device=device)
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
        logits = self._model.model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=mask.sum(1, keepdim=True) - 1,
            past_key_values=cache,
            logits_to_keep=1,
        ).logits[:, -1]
        self._state = (cache, mask, logits.float())

    def _shrink(self) -> None:
        """Leave out the rows that have ended, when no prompt waits for them."""
        parts = self._keep(self._live_places())
        self._rows = [row for row in self._rows if not row.ended]
        self._state = join_rows(parts)

    def _choose(self, rows: Sequence[_Row], scores: Any) -> list[int]:
        """Choose the next token of each row."""
        scores = force_tokens(scores, [row.budget.next_token(row.tokens) if row.budget else None for row in rows])
        if rows[0].stream is not None:
            for warp in sampling_warpers(rows[0].ticket.job.sampling):
                scores = warp(None, scores)
            scores = add_gumbel_noise(scores, [row.stream for row in rows])
        tokens: list[int] = scores.argmax(-1).tolist()
        return tokens

    def _end(self, rows: Sequence[_Row]) -> None:
        """Mark the replies that are whole, and settle the jobs of which all are."""
        stopped = holds_stop(self._model, [row.tokens for row in rows], rows[0].ticket.job.stop)
        for row, stops in zip(rows, stopped, strict=True):
            row.ended = stops or row.tokens[-1] in self._model.ends or len(row.tokens) >= row.ticket.job.budget
        for siblings in {id(row.siblings): row.siblings for row in rows if row.ended}.values():
            if all(row.ended for row in siblings):
                ticket = siblings[0].ticket
                ticket.settle([to_reply(self._model, ticket.job, row.tokens) for row in siblings])
                # Rows that know each other would keep the ticket, and with it the engine, until garbage is collected.
                siblings.clear()

    def _recover(self, error: Exception) -> None:
        """Begin the rows anew, half as many at a time, if memory did not suffice; fail them otherwise."""
        open_tickets = list({id(row.ticket): row.ticket for row in self._rows if not row.ended}.values())
        self._rows, self._state = [], None
        if is_out_of_memory(error) and len(open_tickets) > 1:
            self._writing = BatchLimits(self._writing.tokens, max(1, self._writing.rows // 2))
            self._waiting.extendleft(_Claimed(ticket) for ticket in reversed(open_tickets))
            return
        for ticket in open_tickets:
            ticket.fail(error)


class _Claimed:
    """A ticket whose job was claimed before."""

    def __init__(self, ticket: ReplyTicket) -> None:
        self.job, self.settle, self.fail = ticket.job, ticket.settle, ticket.fail

    def claim(self) -> bool:
        """Return True: it was claimed before."""
        return True

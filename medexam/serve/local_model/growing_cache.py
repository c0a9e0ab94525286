"""Keys and values of rows that come and go: what a batch that is refilled keeps of the tokens that it has read.

Every row is padded on the left, so that the last column is its last token. Columns that no row needs any more are
dropped whenever rows change. This module knows tensors; it knows nothing of replies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

SLACK = 64
"""Columns that are allocated at once: otherwise all keys and values would be copied for each token."""


@dataclass
class CachedRows:
    """The state of some rows between two steps."""

    layers: list[tuple[Any, Any]]
    """Keys and values of each layer, `[rows, heads, columns, head size]`."""
    mask: Any
    """`[rows, columns]`, 1 where a column holds a token of the row."""
    logits: Any
    """The scores of each row's next token in 32 bits, `[rows, vocabulary]`."""

    def select(self, rows: Sequence[int]) -> "CachedRows":
        """Select some of the rows, in this order; a row may be named several times."""
        index = torch.tensor(rows, device=self.mask.device)
        return CachedRows(
            [(keys[index], values[index]) for keys, values in self.layers], self.mask[index], self.logits[index]
        )


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer of a cache that has room for more columns than it shows."""

    def __init__(self, keys: Any, values: Any, filled: int) -> None:
        """Set up the layer; `keys` and `values` are `[rows, heads, columns, head size]`, of which the first `filled`
        are in use.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtype, self.device = keys.dtype, keys.device
        self.is_initialized = True
        self._rooms = [keys, values]
        self._show(filled)

    def update(self, key_states: Any, value_states: Any, *_args: Any, **_kwargs: Any) -> tuple[Any, Any]:
        """Write the keys and values of further columns and return those of all."""
        start, end = self._filled, self._filled + key_states.shape[-2]
        if end > self._rooms[0].shape[-2]:
            extra = end - self._rooms[0].shape[-2] + SLACK
            self._rooms = [torch.nn.functional.pad(room, (0, 0, 0, extra)) for room in self._rooms]
        for room, states in zip(self._rooms, (key_states, value_states), strict=True):
            room[..., start:end, :] = states
        self._show(end)
        return self.keys, self.values

    def _show(self, filled: int) -> None:
        self._filled = filled
        self.keys, self.values = (room[..., :filled, :] for room in self._rooms)


def join_rows(parts: Sequence[CachedRows]) -> tuple[Any, Any, Any]:
    """Join the rows of all parts: a cache with `SLACK` columns of room, the mask `[rows, columns]`, the logits."""
    column_masks = [part.mask.any(0) for part in parts]
    width = max(int(columns.sum()) for columns in column_masks)
    rows = sum(len(part.mask) for part in parts)
    mask = parts[0].mask.new_zeros(rows, width)
    layers: list[Any] = []
    for number, (keys, values) in enumerate(parts[0].layers):
        # Zeros, because what stands in a masked column is multiplied by a weight of zero, and NaN stays NaN.
        rooms = [tensor.new_zeros(rows, tensor.shape[1], width + SLACK, tensor.shape[3]) for tensor in (keys, values)]
        offset = 0
        for part, columns in zip(parts, column_masks, strict=True):
            span = slice(offset, offset + len(part.mask))
            start = width - int(columns.sum())
            for room, states in zip(rooms, part.layers[number], strict=True):
                room[span, :, start:width] = states[:, :, columns]
            mask[span, start:] = part.mask[:, columns]
            offset = span.stop
        layers.append(GrowingLayer(rooms[0], rooms[1], width))
    cache = DynamicCache()
    cache.layers = layers
    return cache, mask, torch.cat([part.logits for part in parts])

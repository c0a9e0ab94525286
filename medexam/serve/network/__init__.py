"""Connections to endpoints: addresses, keys, calls, and asking again."""

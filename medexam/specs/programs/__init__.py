"""Which strategy: the `program` part of a spec."""

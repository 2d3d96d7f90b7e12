"""Observers: one module per agent; bytes of its session files in, events out; no I/O."""

"""Backends: one module per agent; a task in, argv, stdin and environment out; no I/O."""

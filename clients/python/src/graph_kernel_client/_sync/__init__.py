"""Made by make_sync.py of `_async`."""

"""The source of both faces: make_sync.py makes `_sync` of this folder."""

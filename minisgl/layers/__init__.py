"""The operators of a transformer, each a small class that owns its weights."""

"""A model with what it needs to turn a batch into tokens."""

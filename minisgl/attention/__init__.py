"""Attention over the KV cache, for batches whose requests differ in length."""

from minisgl.attention.base import BaseAttnBackend
from minisgl.attention.metadata import BaseAttnMetadata

__all__ = ["BaseAttnBackend", "BaseAttnMetadata"]

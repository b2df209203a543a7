"""Where the keys and values of past tokens are kept, so that none is computed twice."""

from minisgl.kvcache.base import BaseCacheHandle, BaseKVCachePool

__all__ = ["BaseCacheHandle", "BaseKVCachePool"]

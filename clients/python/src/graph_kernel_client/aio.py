"""Every class with coroutines."""

from ._async.anchors import AnchorResolver, AutoAnchorResolver
from ._async.conversation import Conversation
from ._async.database import Database
from ._async.retrieval import DualPlaneRetriever, MemoryRetriever
from ._async.slices import SliceClient

__all__ = [
    "AnchorResolver",
    "AutoAnchorResolver",
    "Conversation",
    "Database",
    "DualPlaneRetriever",
    "MemoryRetriever",
    "SliceClient",
]

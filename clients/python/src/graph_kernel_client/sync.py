"""Every class without coroutines."""

from ._sync.anchors import AnchorResolver, AutoAnchorResolver
from ._sync.conversation import Conversation
from ._sync.database import Database
from ._sync.retrieval import DualPlaneRetriever, MemoryRetriever
from ._sync.slices import SliceClient

__all__ = [
    "AnchorResolver",
    "AutoAnchorResolver",
    "Conversation",
    "Database",
    "DualPlaneRetriever",
    "MemoryRetriever",
    "SliceClient",
]

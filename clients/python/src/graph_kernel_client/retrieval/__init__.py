"""The names of the old layer's `retrieval`, whose searches are not coroutines."""

from .._planes import Plane
from .._sync.retrieval import DualPlaneRetriever, MemoryRetriever
from ..types import (
    DualPlaneHit,
    DualPlaneResults,
    GlobalResults,
    RetrievalProvenance,
    SearchQuery,
    SearchResult,
    SliceInfo,
    SliceScopedQuery,
    SliceScopedResults,
    TrajectoryCoordinates,
    can_promote_to_atom,
    verify_replay,
)

__all__ = [
    "DualPlaneHit",
    "DualPlaneResults",
    "DualPlaneRetriever",
    "GlobalResults",
    "MemoryRetriever",
    "Plane",
    "RetrievalProvenance",
    "SearchQuery",
    "SearchResult",
    "SliceInfo",
    "SliceScopedQuery",
    "SliceScopedResults",
    "TrajectoryCoordinates",
    "can_promote_to_atom",
    "verify_replay",
]

"""Python client of graph_kernel.

The names of the old layer are what they were: `SliceClient` and the resolvers of anchors are awaited, the retrievers
are not. `graph_kernel_client.aio` has all with coroutines, `graph_kernel_client.sync` all without.
"""

from ._sync.conversation import Conversation
from ._sync.database import Database
from ._version import __version__
from .errors import ConfigurationError, GraphKernelError, PinLeftOut, ServiceUnavailable
from .retrieval import DualPlaneRetriever, MemoryRetriever, Plane
from .slice.anchor import AnchorResolver, AutoAnchorResolver
from .slice.client import SliceClient
from .types import (
    DualPlaneHit,
    DualPlaneResults,
    GlobalResults,
    Policy,
    PolicyRef,
    PromptTurn,
    Recall,
    RecalledTurn,
    RetrievalProvenance,
    SearchQuery,
    SearchResult,
    ShownMessage,
    SliceBatch,
    SliceExport,
    SliceFailure,
    SliceInfo,
    SliceScopedQuery,
    SliceScopedResults,
    Step,
    TrajectoryCoordinates,
    Verdict,
    can_promote_to_atom,
    quantize_float,
    verify_replay,
)

__all__ = [
    "AnchorResolver",
    "AutoAnchorResolver",
    "ConfigurationError",
    "Conversation",
    "Database",
    "DualPlaneHit",
    "DualPlaneResults",
    "DualPlaneRetriever",
    "GlobalResults",
    "GraphKernelError",
    "MemoryRetriever",
    "PinLeftOut",
    "Plane",
    "Policy",
    "PolicyRef",
    "PromptTurn",
    "Recall",
    "RecalledTurn",
    "RetrievalProvenance",
    "SearchQuery",
    "SearchResult",
    "ShownMessage",
    "ServiceUnavailable",
    "SliceBatch",
    "SliceClient",
    "SliceExport",
    "SliceFailure",
    "SliceInfo",
    "SliceScopedQuery",
    "SliceScopedResults",
    "Step",
    "TrajectoryCoordinates",
    "Verdict",
    "__version__",
    "can_promote_to_atom",
    "quantize_float",
    "verify_replay",
]

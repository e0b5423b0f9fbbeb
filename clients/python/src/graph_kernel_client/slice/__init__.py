"""The names of the old layer's `slice`."""

from .._async.anchors import AnchorResolver
from .._async.slices import SliceClient
from ..types import PolicyRef, SliceExport

__all__ = ["AnchorResolver", "PolicyRef", "SliceClient", "SliceExport"]

"""The names of the old layer's `slice.client`."""

from .._async.slices import SliceClient
from ..types import PolicyRef, SliceExport

__all__ = ["PolicyRef", "SliceClient", "SliceExport"]

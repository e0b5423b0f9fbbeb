"""The names of the old layer's `slice.anchor`."""

from .._async.anchors import AnchorResolver, AutoAnchorResolver

__all__ = ["AnchorResolver", "AutoAnchorResolver"]

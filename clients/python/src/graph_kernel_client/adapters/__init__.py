"""Histories, memories and retrievers for other packages, one module each, which needs that package."""

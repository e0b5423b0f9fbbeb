"""How a policy is written in a statement."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from .errors import ConfigurationError, GraphKernelError
from .types import Policy, PolicyRef


def policy_sql(policy: Policy | None) -> tuple[str, str]:
    """An expression of type slice_policy with one parameter, and that parameter."""
    if policy is None:
        return "%s::{gk}slice_policy", "default"
    if isinstance(policy, PolicyRef):
        return "{gk}graph_policy(%s::pg_catalog.text)", policy.params_hash
    if isinstance(policy, str):
        return (
            "%s::{gk}slice_policy" if policy.lstrip().startswith("{") else "{gk}graph_policy(%s::pg_catalog.text)"
        ), policy
    return "%s::{gk}slice_policy", policy_text(policy)


def policy_text(policy: Mapping[str, Any]) -> str:
    """The parameters as the server reads them; ids of turns may be UUIDs."""

    def other(value: object) -> str:
        if isinstance(value, uuid.UUID):
            return str(value)
        raise TypeError(f"{type(value).__name__} is not JSON")

    try:
        return json.dumps(dict(policy), default=other, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"not a policy: {error}") from error


def check_policy_id(policy: Policy | None, policy_id: str) -> None:
    """A reference names two things: the fingerprint alone could be that of a policy of another version."""
    if isinstance(policy, PolicyRef) and policy.policy_id != policy_id:
        raise GraphKernelError(
            f'policy "{policy.params_hash}" is of {policy_id}, not of {policy.policy_id}',
            sqlstate="42704",
            word="POLICY_NOT_FOUND",
        )

"""How a policy is written in a statement."""

from __future__ import annotations

import json

from .errors import ConfigurationError, GraphKernelError
from .types import Policy, PolicyRef


def policy_sql(policy: Policy | None) -> tuple[str, str]:
    """An expression of type slice_policy with one parameter, and that parameter."""
    if policy is None:
        return "%s::{gk}slice_policy", "default"
    if isinstance(policy, PolicyRef):
        return "{gk}graph_policy(%s::text)", policy.params_hash
    if isinstance(policy, str):
        return ("%s::{gk}slice_policy" if policy.lstrip().startswith("{") else "{gk}graph_policy(%s::text)"), policy
    try:
        return "%s::{gk}slice_policy", json.dumps(dict(policy), default=str)
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

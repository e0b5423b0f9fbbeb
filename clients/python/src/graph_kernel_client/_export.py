"""An export as a document: reading it, its canonical bytes, and what can be computed of it again."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ._json import Malformed, Object, as_integer, as_uuid, binary32_text, compact, read, uuid_bytes
from ._xxh64 import xxh64_hex

MAX_EXPORT_BYTES = 64 * 1024 * 1024
MAX_TOKEN_BYTES = 64 * 1024
SCHEMA_VERSION = "1.0.0"
ROLES = ("user", "assistant", "system", "tool")
_PHASES = ("exploration", "debugging", "planning", "consolidation", "synthesis")
EDGE_TYPES = ("reply", "branch", "reference", "default")
_BINARY32 = ("salience", "trajectory_homogeneity", "trajectory_temporal", "trajectory_complexity")
_ONE = 1_000_000
_I32 = 2**31 - 1
_SECONDS = 2**53 - 1


@dataclass
class Export:
    anchor: str
    turns: list[dict[str, Any]]
    edges: list[tuple[str, str, str]]
    policy_id: str
    params_hash: str
    schema_version: str
    slice_id: str
    snapshot_hash: str
    token: str | None
    attestation: dict[str, Any] | None


def parse(text: str) -> Export:
    return of_value(read(text, MAX_EXPORT_BYTES, MAX_TOKEN_BYTES))


def of_value(value: Any) -> Export:
    """The export that this value is. Raises `Malformed`."""
    keys = Object(value)
    export = Export(
        turns=keys.list("turns", _turn),
        edges=keys.list("edges", _edge),
        anchor=keys.uuid("anchor_turn_id"),
        policy_id=keys.string("policy_id"),
        params_hash=keys.hex("policy_params_hash", 16),
        schema_version=keys.string("schema_version"),
        slice_id=keys.hex("slice_id", 16),
        snapshot_hash=keys.hex("graph_snapshot_hash", 16),
        token=keys.optional_hex("admissibility_token", 32),
        attestation=None if (claim := keys.take("attestation")) is None else _attestation(claim),
    )
    keys.finish()
    return export


def _turn(value: Any) -> dict[str, Any]:
    keys = Object(value)
    turn = {
        "id": keys.uuid("id"),
        "session_id": keys.string("session_id"),
        "role": keys.named("role", ROLES),
        "phase": keys.named("phase", _PHASES),
        "salience": keys.binary32("salience"),
        "trajectory_depth": keys.count("trajectory_depth"),
        "trajectory_sibling_order": keys.count("trajectory_sibling_order"),
        "trajectory_homogeneity": keys.binary32("trajectory_homogeneity"),
        "trajectory_temporal": keys.binary32("trajectory_temporal"),
        "trajectory_complexity": keys.binary32("trajectory_complexity"),
        "created_at": keys.integer("created_at"),
        "content_hash": keys.optional_hex("content_hash", 64),
    }
    keys.finish()
    return turn


def _edge(value: Any) -> tuple[str, str, str]:
    keys = Object(value)
    edge = (keys.uuid("parent"), keys.uuid("child"), keys.named("edge_type", EDGE_TYPES))
    keys.finish()
    return edge


def _attestation(value: Any) -> dict[str, Any]:
    keys = Object(value)
    claim = {
        "v": keys.count("v"),
        "kid": keys.string("kid"),
        "digest": keys.hex("digest", 64),
        "graph": keys.string("graph"),
        "policy": policy_of(keys.take("policy")),
        "role": keys.string("role"),
        "rls": keys.boolean("rls"),
        "status": keys.named("status", ("attested", "uncommitted", "distributed")),
        "token": keys.optional_string("token"),
    }
    keys.finish()
    return claim


def policy_of(value: Any) -> dict[str, Any]:
    """The policy of an attestation, in the canonical order of its keys. Weights and shares are in millionths."""
    keys = Object(value)
    version = keys.named("version", ("slice_policy_v1", "slice_policy_v2"))
    two = version == "slice_policy_v2"
    policy: dict[str, Any] = {
        "version": version,
        "max_nodes": keys.integer("max_nodes", 1, 10_000),
        "max_radius": keys.integer("max_radius", 0, _I32),
    }
    if two:
        policy["max_tokens"] = keys.optional_integer("max_tokens", 1, _I32)
    weights = Object(keys.take("phase_weights"))
    policy["phase_weights"] = {
        phase: weights.integer(phase, -_ONE * _ONE, _ONE * _ONE) for phase in reversed(_PHASES_BY_WEIGHT)
    }
    weights.finish()
    policy["salience_weight"] = keys.integer("salience_weight", 0, _ONE)
    policy["distance_decay"] = keys.integer("distance_decay", 0, _ONE)
    if two:
        weights = Object(keys.take("edge_weights"))
        policy["edge_weights"] = {name: weights.integer(name, 0, _ONE) for name in EDGE_TYPES}
        weights.finish()
        policy["halving_seconds"] = keys.optional_integer("halving_seconds", 1, _SECONDS)
        policy["include_parents"] = keys.boolean("include_parents")
        policy["include_children"] = keys.boolean("include_children")
    policy["include_siblings"] = keys.boolean("include_siblings")
    policy["max_siblings_per_node"] = keys.integer("max_siblings_per_node", 0, _I32)
    if two:
        policy["same_session"] = keys.boolean("same_session")
        policy["max_seconds_before"] = keys.optional_integer("max_seconds_before", 0, _SECONDS)
        policy["max_seconds_after"] = keys.optional_integer("max_seconds_after", 0, _SECONDS)
        policy["as_of"] = keys.optional_integer("as_of", -_SECONDS, _SECONDS)
        policy["keep_tool_results"] = keys.boolean("keep_tool_results")
        policy["recall_tokens"] = keys.optional_integer("recall_tokens", 1, _I32)
        policy["recall_radius"] = keys.integer("recall_radius", 0, 16)
        policy["recall_decay"] = keys.integer("recall_decay", 0, _ONE)
        policy["recall_share"] = keys.integer("recall_share", 0, _ONE)
        policy["cut_share"] = keys.integer("cut_share", 0, 900_000)
        policy["cut_to_user"] = keys.boolean("cut_to_user")
        policy["pins"] = _pins(keys.take("pins"))
        policy["seeds"] = _seeds(keys.take("seeds"))
    keys.finish()
    return policy


# From the least weight of `default` to the greatest; written the other way round.
_PHASES_BY_WEIGHT = ("exploration", "debugging", "consolidation", "planning", "synthesis")


def _pins(value: Any) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not 1 <= len(value) <= 64:
        raise Malformed("pins is not an array of 1 to 64 uuids")
    pins = [as_uuid(pin) for pin in value]
    if len(set(pins)) != len(pins):
        raise Malformed("pins has a uuid twice")
    return pins


def _seeds(value: Any) -> dict[str, int] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not 1 <= len(value) <= 256:
        raise Malformed("seeds is not an object of 1 to 256 uuids")
    return {as_uuid(seed): as_integer(value[seed], 1, _ONE) for seed in sorted(value)}


def canonical(export: Export) -> str:
    """The bytes that the kernel wrote, as text, if that is what was read."""
    end = {
        "policy_id": export.policy_id,
        "policy_params_hash": export.params_hash,
        "schema_version": export.schema_version,
        "slice_id": export.slice_id,
        "graph_snapshot_hash": export.snapshot_hash,
        "admissibility_token": export.token,
        "attestation": export.attestation,
    }
    turns = ",".join(map(_canonical_turn, export.turns))
    edges = ",".join(
        f'{{"parent":"{parent}","child":"{child}","edge_type":"{kind}"}}' for parent, child, kind in export.edges
    )
    return f'{{"anchor_turn_id":"{export.anchor}","turns":[{turns}],"edges":[{edges}],{compact(end)[1:]}'


def _canonical_turn(turn: dict[str, Any]) -> str:
    parts = (f'"{key}":{binary32_text(value) if key in _BINARY32 else compact(value)}' for key, value in turn.items())
    return "{" + ",".join(parts) + "}"


def _edge_key(edge: tuple[str, str, str]) -> tuple[str, str, int]:
    return (edge[0], edge[1], EDGE_TYPES.index(edge[2]))


def params_hash(policy: dict[str, Any]) -> str:
    return xxh64_hex(compact({k: v for k, v in policy.items() if k not in ("pins", "seeds")}).encode())


def slice_id(export: Export, policy_id: str) -> str:
    edges = [{"parent": parent, "child": child, "edge_type": kind.title()} for parent, child, kind in export.edges]
    ids = [turn["id"] for turn in export.turns]
    return xxh64_hex(compact([export.anchor, ids, edges, policy_id, export.params_hash, SCHEMA_VERSION]).encode())


def snapshot_hash(export: Export) -> str:
    if any(turn["content_hash"] is None for turn in export.turns) or not export.turns:
        latest = max((turn["created_at"] for turn in export.turns), default=0)
        if export.turns:
            return xxh64_hex(compact([latest, len(export.turns), len(export.edges), SCHEMA_VERSION]).encode())
    hashed = struct.pack("<Q", len(export.edges)) + SCHEMA_VERSION.encode()
    return xxh64_hex(hashed + b"".join(uuid_bytes(turn["id"]) + turn["content_hash"].encode() for turn in export.turns))


def enc(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def digest(export: Export, policy: dict[str, Any]) -> bytes:
    """What the attestation signs of turns, edges and policy."""
    hashed = hashlib.sha256(enc("graph_kernel/slice/v3") + uuid_bytes(export.anchor))
    hashed.update(struct.pack("<I", len(export.turns)))
    for turn in export.turns:
        content = turn["content_hash"]
        hashed.update(
            uuid_bytes(turn["id"])
            + enc(turn["session_id"])
            + enc(turn["role"])
            + enc(turn["phase"])
            + struct.pack(
                "<fIIfffq",
                turn["salience"],
                turn["trajectory_depth"],
                turn["trajectory_sibling_order"],
                turn["trajectory_homogeneity"],
                turn["trajectory_temporal"],
                turn["trajectory_complexity"],
                turn["created_at"],
            )
            + (b"\0" if content is None else b"\1" + enc(content))
        )
    hashed.update(struct.pack("<I", len(export.edges)))
    for parent, child, kind in export.edges:
        hashed.update(uuid_bytes(parent) + uuid_bytes(child) + enc(kind))
    hashed.update(enc(compact(policy)))
    return hashed.digest()


def inconsistency(export: Export) -> str | None:
    """The first reason why the export cannot be one that the kernel attested, by what needs no key."""
    ids = [turn["id"] for turn in export.turns]
    edges = [_edge_key(edge) for edge in export.edges]
    if any(a >= b for a, b in pairwise(ids)) or any(a >= b for a, b in pairwise(edges)):
        return "unordered"
    claim = export.attestation
    if (
        export.policy_id not in ("slice_policy_v1", "slice_policy_v2")
        or export.schema_version != SCHEMA_VERSION
        or (claim is not None and (claim["v"] != 3 or claim["policy"]["version"] != export.policy_id))
    ):
        return "unknown_version"
    inside = set(ids)
    if export.anchor not in inside or any(p not in inside or c not in inside for p, c, _ in export.edges):
        return "boundary"
    if claim is None or claim["status"] != "attested":
        return "distributed" if claim is not None and claim["status"] == "distributed" else "unattested"
    policy = claim["policy"]
    if params_hash(policy) != export.params_hash:
        return "params_hash_mismatch"
    if len(export.turns) > policy["max_nodes"]:
        return "over_budget"
    if slice_id(export, policy["version"]) != export.slice_id:
        return "slice_id_mismatch"
    if snapshot_hash(export) != export.snapshot_hash or digest(export, policy).hex() != claim["digest"]:
        return "digest_mismatch"
    return None

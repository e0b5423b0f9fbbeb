"""Checks without a database: exports and records of prompts by their fingerprints, proofs by a public key.

`verify_proof` needs the extra `verify`. Choose the public key yourself, from where its holder publishes it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any

from ._export import policy_of
from ._json import Malformed, Object, read
from ._record import Document as Parsed
from ._record import parse
from .types import Document, Verdict, document_of

__all__ = ["check_export", "statement", "verify_proof"]

_MAX_PROOF_BYTES = 64 * 1024
_MAX_PEM_BYTES = 4096
_PAYLOAD_TYPE = "application/vnd.in-toto+json"
_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_SLICE_TYPE = "urn:x-graph-kernel:slice:v1"
_PROMPT_TYPE = "urn:x-graph-kernel:prompt:v1"
# A SubjectPublicKeyInfo of Ed25519 before its 32 bytes.
_SPKI = bytes.fromhex("302a300506032b6570032100")
_P = 2**255 - 19
# The y of the points of small order, whose signatures hold for many messages.
_SMALL_ORDER = frozenset(
    (
        0,
        1,
        _P - 1,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7,
    )
)
_L = 2**252 + 27742317777372353535851937790883648493


def check_export(document: Document) -> Verdict:
    """Whether an export, or the record of a prompt, agrees with itself: its order, bounds, fingerprints and digests,
    with the reasons of `graph_verify`. Whoever edits one can compute all of these again: only a token or a proof says
    whose it is."""
    try:
        read = parse(document_of(document))
    except Malformed:
        return Verdict(False, "malformed")
    claim = read.export.attestation or {}
    reason = read.inconsistency()
    return Verdict(reason is None, reason or "ok", claim.get("kid"), claim.get("role"), claim.get("rls"))


def verify_proof(document: Document, proof: str, public_key: str) -> Verdict:
    """Whether the proof is that of this export or record, under this public key in PEM; the reasons are those of
    `graph_verify_proof`."""
    reason = _refusal(document_of(document), proof, public_key)
    return Verdict(reason is None, reason or "ok")


def statement(proof: str) -> dict[str, Any]:
    """What a proof says, unchecked."""
    _, payload, _ = _envelope(proof)
    try:
        value: dict[str, Any] = json.loads(payload)
    except RecursionError as error:
        raise Malformed("the payload is nested too deep") from error
    return value


def _refusal(document: str, proof: str, public_key: str) -> str | None:
    key = _public_key(public_key)
    if key is None:
        return "malformed_key"
    try:
        kid, payload, signature = _envelope(proof)
    except Malformed:
        return "malformed_proof"
    signed = b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD_TYPE), _PAYLOAD_TYPE.encode(), len(payload), payload)
    if not _is_signature(key, signature, signed):
        return "bad_signature"
    try:
        stated = _statement(payload)
    except Malformed:
        return "malformed_proof"
    try:
        checked = parse(document)
    except Malformed:
        return "malformed_export"
    computed = hashlib.sha256(checked.canonical().encode()).hexdigest()
    if stated["subject"]["sha256"] != computed:
        return "other_export"
    claim = checked.export.attestation
    says_the_same = (
        claim is not None
        and stated == _statement_of(checked, computed, stated["predicate"]["key_source"])
        and claim["kid"] == kid
    )
    return None if says_the_same and checked.inconsistency() is None else "inconsistent"


def _public_key(pem: str) -> bytes | None:
    if len(pem.encode(errors="replace")) > _MAX_PEM_BYTES:
        return None
    # What RFC 7468 allows: text before it, each end of a line in any form, and one empty line after the base64.
    lines = pem.strip(" \t\r\n\f").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = lines[next((n for n, line in enumerate(lines) if "-----BEGIN" in line), len(lines)) :]
    if len(lines) == 4 and lines[2] == "":
        lines.pop(2)
    if len(lines) != 3 or (lines[0], lines[2]) != ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"):
        return None
    try:
        der = _base64(lines[1])
    except Malformed:
        return None
    if len(der) != 44 or not der.startswith(_SPKI):
        return None
    return der[12:] if _is_point(der[12:]) else None


def _is_point(encoded: bytes) -> bool:
    """Whether these bytes are a point of the curve."""
    number = int.from_bytes(encoded, "little")
    y = number % 2**255 % _P
    numerator, denominator = (y * y - 1) % _P, (-121665 * pow(121666, -1, _P) * y * y + 1) % _P
    square = numerator * pow(denominator, -1, _P) % _P
    if square == 0:
        return True  # with either sign
    return pow(square, (_P - 1) // 2, _P) == 1


def _is_signature(key: bytes, signature: bytes, message: bytes) -> bool:
    """Strictly: keys and nonces of small order and second spellings of a signature are refused."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if int.from_bytes(signature[32:], "little") >= _L:
        return False
    for point in (key, signature[:32]):
        if int.from_bytes(point, "little") % 2**255 % _P in _SMALL_ORDER:
            return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _base64(text: str) -> bytes:
    """The bytes of standard base64 with padding, which has one spelling."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed("not base64") from error
    if base64.b64encode(decoded).decode() != text:
        raise Malformed("not base64")
    return decoded


def _envelope(text: str) -> tuple[str, bytes, bytes]:
    """The key id, the payload and the signature."""
    keys = Object(read(text, _MAX_PROOF_BYTES, _MAX_PROOF_BYTES))
    payload = _base64(keys.string("payload"))
    if keys.string("payloadType") != _PAYLOAD_TYPE:
        raise Malformed("payloadType")
    signatures = keys.list("signatures", _signature)
    keys.finish()
    if len(signatures) != 1:
        raise Malformed("a proof has one signature")
    return (signatures[0][0], payload, signatures[0][1])


def _signature(value: Any) -> tuple[str, bytes]:
    keys = Object(value)
    kid, signature = keys.string("keyid"), _base64(keys.string("sig"))
    keys.finish()
    if len(signature) != 64:
        raise Malformed("a signature has 64 bytes")
    return (kid, signature)


def _statement(payload: bytes) -> dict[str, Any]:
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        raise Malformed("not UTF-8") from error
    keys = Object(read(text, _MAX_PROOF_BYTES, _MAX_PROOF_BYTES))
    if keys.string("_type") != _STATEMENT_TYPE:
        raise Malformed("_type")
    subjects = keys.list("subject", _subject)
    kind = keys.named("predicateType", (_SLICE_TYPE, _PROMPT_TYPE))
    predicate = _predicate(keys.take("predicate"), kind == _PROMPT_TYPE)
    keys.finish()
    if len(subjects) != 1:
        raise Malformed("a statement has one subject")
    return {"subject": subjects[0], "kind": kind, "predicate": predicate}


def _subject(value: Any) -> dict[str, str]:
    keys = Object(value)
    name = keys.string("name")
    digests = Object(keys.take("digest"))
    sha256 = digests.hex("sha256", 64)
    digests.finish()
    keys.finish()
    return {"name": name, "sha256": sha256}


def _predicate(value: Any, of_prompt: bool) -> dict[str, Any]:
    keys = Object(value)
    predicate = {
        "anchor_turn_id": keys.uuid("anchor_turn_id"),
        "policy_id": keys.string("policy_id"),
        "policy_params_hash": keys.hex("policy_params_hash", 16),
        "policy": policy_of(keys.take("policy")),
        "turns": keys.count("turns"),
        "edges": keys.count("edges"),
        "slice_id": keys.hex("slice_id", 16),
        "graph_snapshot_hash": keys.hex("graph_snapshot_hash", 16),
        "schema_version": keys.string("schema_version"),
        "graph": keys.string("graph"),
        "role": keys.string("role"),
        "rls": keys.boolean("rls"),
        "kid": keys.string("kid"),
        "key_source": keys.named("key_source", ("database", "file")),
    }
    if of_prompt:
        predicate["prompt_digest"] = keys.hex("prompt_digest", 64)
        predicate["messages"] = keys.count("messages")
        predicate["tokens"] = keys.integer("tokens", 0)
    keys.finish()
    return predicate


def _statement_of(document: Parsed, sha256: str, key_source: str) -> dict[str, Any]:
    """The statement about an attested document."""
    export, record = document.export, document.record
    claim = export.attestation or {}
    predicate = {
        "anchor_turn_id": export.anchor,
        "policy_id": export.policy_id,
        "policy_params_hash": export.params_hash,
        "policy": claim["policy"],
        "turns": len(export.turns),
        "edges": len(export.edges),
        "slice_id": export.slice_id,
        "graph_snapshot_hash": export.snapshot_hash,
        "schema_version": export.schema_version,
        "graph": claim["graph"],
        "role": claim["role"],
        "rls": claim["rls"],
        "kid": claim["kid"],
        "key_source": key_source,
    }
    name, kind = f"slice/{export.slice_id}", _SLICE_TYPE
    if record is not None:
        name, kind = f"prompt/{record.digest}", _PROMPT_TYPE
        predicate["prompt_digest"] = record.digest
        predicate["messages"] = len(record.messages)
        predicate["tokens"] = sum(message["tokens"] for message in record.messages)
    return {"subject": {"name": name, "sha256": sha256}, "kind": kind, "predicate": predicate}

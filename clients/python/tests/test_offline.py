"""Checks without a database: worked cases of the specification, and the server's own verdicts on edited documents."""

from __future__ import annotations

import decimal
import json
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import ANCHOR, MISSING

from graph_kernel_client import _json, sync
from graph_kernel_client._export import canonical, digest, parse
from graph_kernel_client._json import Number, _shortest_even, _slow_shortest_even, binary32_text, compact
from graph_kernel_client._record import parse as parse_document
from graph_kernel_client._xxh64 import xxh64_hex
from graph_kernel_client.offline import _is_signature, check_export, statement, verify_proof

pytest.importorskip("cryptography")


def vectors(name: str) -> list[dict[str, Any]]:
    """Worked cases, in the folder `shared` beside the repository."""
    path = Path(__file__).parents[4] / "shared/vectors" / name
    if not path.exists():
        pytest.skip(f"there is no ../shared/vectors/{name}")
    cases: list[dict[str, Any]] = json.loads(path.read_text())
    return cases


def test_published_fingerprints() -> None:
    assert xxh64_hex(b"") == "ef46db3751d8e999" and xxh64_hex(b"a") == "d24ec4f1a98c6e5b"
    assert xxh64_hex(bytes(range(101))) == xxh64_hex(bytearray(range(101)))


def test_worked_proofs() -> None:
    for case in vectors("proof.json"):
        export, proof, key = case["export_text"], case["proof_text"], case["public_key_pem"]
        assert canonical(parse(export)) == export
        assert verify_proof(export, proof, key).reason == "ok"
        assert statement(proof) == json.loads(case["statement_text"])
        # White space, the order of keys and the spelling of numbers are free.
        rewritten = json.dumps(json.loads(export), indent=1, sort_keys=True).replace("0.5", "5e-1")
        assert verify_proof(rewritten, proof, key).reason == "ok"
        assert verify_proof(export, proof, key.replace("MCow", "MCox")).reason == "malformed_key"
        other = export.replace('"role":"user"', '"role":"tool"', 1)
        assert verify_proof(other, proof, key).reason == "other_export"
        assert check_export(other).reason == "digest_mismatch"
    assert {case["key_source"] for case in vectors("proof.json")} == {"file", "database"}


def test_worked_attestations() -> None:
    for case in vectors("attestation.json"):
        text = json.dumps(case["export"])
        export = parse(text)
        assert export.attestation is not None
        assert digest(export, export.attestation["policy"]).hex() == case["export"]["attestation"]["digest"]
        assert check_export(text).reason == "ok"


def test_worked_records() -> None:
    for case in vectors("prompt.json"):
        text = case["record_text"] if "record_text" in case else json.dumps(case["record"])
        assert check_export(text).reason == "ok"
        record = json.loads(text)
        assert parse_document(text).canonical() == compact(record)
        messages = record["messages"]
        if len(messages) > 1:
            moved = dict(record, messages=[*messages[1:], messages[0]])
            assert check_export(json.dumps(moved)).reason == "other_order"
        assert check_export(json.dumps(dict(record, messages=messages[:-1]))).reason == "other_turns"
        assert check_export(json.dumps(dict(record, context="0" * 64))).reason == "prompt_digest_mismatch"


def test_keys_and_signatures_of_small_order() -> None:
    case = vectors("proof.json")[0]
    import base64

    # OpenSSL takes this key and this signature for any message.
    identity = (1).to_bytes(32, "little")
    assert not _is_signature(identity, identity + bytes(32), b"any")
    assert not _is_signature(bytes([1, *bytes(30), 0x80]), identity + bytes(32), b"any")
    for y in (0, 1, 2**255 - 20, 2**255 - 19):
        der = bytes.fromhex("302a300506032b6570032100") + y.to_bytes(32, "little")
        pem = f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(der).decode()}\n-----END PUBLIC KEY-----\n"
        assert verify_proof(case["export_text"], case["proof_text"], pem).reason in ("bad_signature", "malformed_key")


def binary32(bits: int) -> float:
    number: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return number


def test_zeros_have_their_signs_whichever_comes_first() -> None:
    for zeros in ((-0.0, 0.0), (0.0, -0.0)):
        assert [binary32_text(zero) for zero in zeros] == [str(zero) for zero in zeros]


def test_zeros_that_say_nothing_take_no_time() -> None:
    zeros = "0" * 60_000
    begun = time.process_time()
    for text in ("0.5", "-12.25", "3e-40", "1e-101", "1e101", "0.0", "-0.0", "0.1", "16777217.0"):
        mantissa, _, exponent = text.partition("e")
        dotted = mantissa if "." in mantissa else mantissa + "."
        long = Number(dotted + zeros + (f"e{exponent}" if exponent else ""))
        short = Number(text)
        expected = struct.pack("<f", short.binary32()) if short.binary32() is not None else None
        for _ in range(100):
            read = long.binary32()
            assert (None if read is None else struct.pack("<f", read)) == expected, text
    # Minutes where all of it is computed with.
    assert time.process_time() - begun < 10
    assert Number("0." + zeros + "1").binary32() is None
    assert Number("1" + zeros).binary32() is None


def test_decimals_of_the_application_change_nothing() -> None:
    def seen(salt: int) -> list[object]:
        """What is said of numbers that nothing has remembered yet."""
        numbers = [binary32(0x3F123457 + salt), binary32(0x00000011 + salt), binary32(0x7F7FFF00 + salt)]
        texts = [*map(binary32_text, numbers), "0e99999999999999999999", "0.1234567", f"{1 + salt}.5e3"]
        return [*texts, *(Number(text).binary32() for text in texts), Number("17e0").integer()]

    expected = [seen(salt) for salt in range(4)]
    for cached in (_json._binary32, _json._binary32_text):
        cached.cache_clear()
    contexts = [
        decimal.Context(prec=3),
        decimal.Context(traps=[decimal.FloatOperation, decimal.Inexact, decimal.Rounded]),
        decimal.Context(traps=[]),
        decimal.Context(prec=1, Emax=1, Emin=-1, traps=[decimal.Overflow, decimal.Subnormal]),
    ]
    for salt, context in enumerate(contexts):
        with decimal.localcontext(context):
            assert seen(salt) == expected[salt]


def test_binary32_reads_back() -> None:
    chosen = random.Random(42)
    for _ in range(1000):
        number = binary32(chosen.getrandbits(32))
        if number - number != 0:
            continue
        text = binary32_text(number)
        assert Number(text).binary32() == number
        assert Number(repr(number)).binary32() == number
    for text in ("0.30000001", "0.1000000000000001", "1e39", "1e999999999999999999999", "0.10000000149011613"):
        assert Number(text).binary32() is None, text
    for text, value in {
        "17": 17,
        "17.0": 17,
        "1.7e1": 17,
        "-0": 0,
        "0e999999999999999999999": 0,
        "9223372036854775807": 2**63 - 1,
    }.items():
        assert Number(text).integer() == value
    for text in ("1.5", "9223372036854775808", "1e400", "1e-1", "1e999999999999999999999", "1e-999999999999999999999"):
        assert Number(text).integer() is None, text


def test_the_fast_way_to_write_a_number_is_the_exact_one() -> None:
    chosen = random.Random(9)
    patterns = [chosen.getrandbits(32) for _ in range(4000)]
    # Around powers of two and of ten, and those that are halfway between short texts.
    patterns += [(power << 23) + step for power in range(1, 255, 3) for step in (0, 1, 2, 0x7FFFFF)]
    patterns += [
        struct.unpack("<I", struct.pack("<f", float(f"{n}e{power}")))[0]
        for n in (1, 5, 15, 16777217)
        for power in range(-44, 30)
    ]
    for bits in patterns:
        number = binary32(bits)
        if number - number == 0 and number != 0:
            assert _shortest_even(number) == _slow_shortest_even(number), number


def test_numbers_are_written_as_the_kernel_writes_them(connection: psycopg.Connection[Any]) -> None:
    chosen = random.Random(7)
    numbers = [1e-7, 1e-6, 1e-5, 1e-4, 0.001, 123456.79, 1e15, 1e16, 3.4e38, 1.5e-45, -0.0, -1.25, 9.5e14, 16777216.0]
    numbers += [
        binary32(bits) for bits in (chosen.getrandbits(32) for _ in range(700)) if bits & 0x7F800000 != 0x7F800000
    ]
    numbers += [float(f"{chosen.randrange(1, 10)}e{power}") for power in range(-44, 38) for _ in range(3)]
    numbers += [binary32(power << 23) for power in range(1, 255)]
    with connection.transaction(force_rollback=True):
        connection.execute("DELETE FROM memory_turn_edges")
        connection.execute("DELETE FROM memory_turns")
        connection.execute(
            """INSERT INTO memory_turns (id, role, trajectory_complexity)
               SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'user', x::real
                 FROM unnest(%s::float8[]) WITH ORDINALITY AS t (x, n)""",
            (numbers,),
        )
        connection.execute(
            """INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id)
               SELECT '00000000-0000-4000-8000-000000000001', id FROM memory_turns
                WHERE id <> '00000000-0000-4000-8000-000000000001'"""
        )
        client = sync.SliceClient(connection)
        export = client.get_slice("00000000-0000-4000-8000-000000000001", {"max_nodes": 10_000})
        assert len(export.turn_ids) == len(numbers)
        assert canonical(parse(export.document or "")) == export.document


def test_long_tokens(connection: psycopg.Connection[Any]) -> None:
    """The same limit as the server, and no computing that takes long before it."""
    client = sync.SliceClient(connection)
    document = client.get_slice(ANCHOR, {"max_nodes": 4}).document or ""
    proof, key = client.proof(document), client.public_key()
    begin = time.monotonic()
    for old in ('"created_at":', '"salience":', '"session_id":"'):
        at = document.index(old) + len(old)
        end = next(n for n in range(at, len(document)) if document[n] in ',}"')
        for size in (60_000, 65_535, 65_536, 65_537, 200_000):
            value = document[at:end]
            longer = value + ("" if "." in value or '"' in old else ".")
            for filler in ("0", "3"):
                edited = document[:at] + longer + filler * (size - len(longer)) + document[end:]
                assert check_export(edited).reason == client.verify(edited).reason, (old, size, filler)
                row = connection.execute(
                    "SELECT reason FROM graph_verify_proof(%s::json, %s::json, %s)", (edited, proof, key)
                ).fetchone()
                assert (verify_proof(edited, proof, key).reason,) == row
    for pem in (key, "x\n" * 2000 + key, "x\n" * 200_000 + key):
        row = connection.execute(
            "SELECT reason FROM graph_verify_proof(%s::json, %s::json, %s)", (document, proof, pem)
        ).fetchone()
        assert (verify_proof(document, proof, pem).reason,) == row
    assert Number("0." + "3" * 5_000_000).binary32() is None
    assert time.monotonic() - begin < 20


def edits(chosen: random.Random, text: str) -> Iterator[str]:
    """Documents that differ a little: in bytes, and in values that stay JSON."""
    while True:
        at = chosen.randrange(len(text))
        kind = chosen.randrange(6)
        if kind == 0:
            yield text[:at] + chosen.choice('0123456789abcdef"{}[],:-.eE \\nu\0\x7f') + text[at + 1 :]
        elif kind == 1:
            yield text[:at] + text[at + 1 :]
        elif kind == 2:
            yield text[:at] + chosen.choice(["0", " ", "e1", ".0", '"', "null", ",", "\\u0061"]) + text[at:]
        else:
            value = json.loads(text)
            changed(chosen, value)
            yield json.dumps(value, indent=chosen.choice([None, 1]))


def changed(chosen: random.Random, value: Any) -> None:
    """Changes one value somewhere below."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = chosen.choice(keys)
    inner = value[key]
    if isinstance(inner, (dict, list)) and inner and chosen.random() < 0.8:
        changed(chosen, inner)
    elif isinstance(inner, bool):
        value[key] = chosen.choice([not inner, None, 0])
    elif isinstance(inner, (int, float)):
        value[key] = chosen.choice([inner + 1, -inner, float(inner), inner / 3, 0, 2**40, str(inner), None])
    elif isinstance(inner, str):
        value[key] = chosen.choice([inner.upper(), inner[::-1], inner + " ", "", None, "é", inner])
    elif isinstance(value, list) and chosen.random() < 0.5:
        value.append(inner)
    elif isinstance(value, dict):
        value[chosen.choice(["x", str(key)])] = value.pop(key)
    else:
        value.reverse()


def directed(document: str) -> Iterator[str]:
    """An edit for each reason that needs no key."""

    def edited(*changes: Any) -> str:
        value = json.loads(document)
        export = value.get("slice", value)
        for change in changes:
            change(value, export)
        return json.dumps(value)

    yield edited(lambda value, export: export.pop("edges"))
    yield edited(lambda value, export: export["turns"].reverse())
    yield edited(lambda value, export: export.update(schema_version="2.0.0"))
    yield edited(lambda value, export: export.update(anchor_turn_id=MISSING))
    yield edited(lambda value, export: export.update(attestation=None, admissibility_token=None))
    yield edited(
        lambda value, export: export.update(admissibility_token=None),
        lambda value, export: export["attestation"].update(status="distributed", token=None),
    )
    yield edited(lambda value, export: export["attestation"]["policy"].update(max_radius=9))
    yield edited(lambda value, export: export.update(slice_id="0" * 16))
    yield edited(lambda value, export: export["turns"][0].update(created_at=1))
    yield edited(lambda value, export: export["attestation"].update(kid="1-0000000000000000"))
    if "messages" in json.loads(document):
        yield edited(lambda value, export: value["messages"].pop())
        yield edited(lambda value, export: value["messages"].reverse())
        yield edited(lambda value, export: value.update(context="0" * 64))
        yield edited(lambda value, export: value.update(token=None))


V2 = {
    "preset": "chat",
    "max_tokens": 500,
    "pins": ["3f2de823-604e-58f6-a1f5-186c8c8755b7"],
    "seeds": {"944708e3-3cb7-565f-a2fc-971543aaaa99": 0.9, "ee76b8d6-817c-5696-918a-8a34a1af0a8b": 0.4},
    "recall_tokens": 200,
}


@pytest.mark.parametrize("kind", ["graph_slice", "graph_messages_record"])
@pytest.mark.parametrize("policy", [{"max_nodes": 4}, V2], ids=["v1", "v2"])
def test_the_verdicts_are_the_servers(connection: psycopg.Connection[Any], policy: dict[str, Any], kind: str) -> None:
    client = sync.SliceClient(connection)
    row = connection.execute(
        f"SELECT {kind}(%s::uuid, %s::slice_policy)::text", (ANCHOR, json.dumps(policy))
    ).fetchone()
    assert row is not None
    document, key = row[0], client.public_key()
    proof = client.proof(document)
    assert verify_proof(document, proof, key).reason == "ok" and check_export(document).reason == "ok"
    assert parse_document(document).canonical() == document

    chosen = random.Random(2026)
    documents, proofs = edits(chosen, document), edits(chosen, proof)
    cases = [(text, proof, key) for text in directed(document)]
    cases += [(next(documents), proof, key) for _ in range(400)] + [(document, next(proofs), key) for _ in range(200)]
    for _ in range(100):
        at = chosen.randrange(len(key))
        edited = key[:at] + chosen.choice(["", "\n", " ", "A", "=", "-", key[at] * 2]) + key[at + 1 :]
        cases.append((document, proof, edited))
    reasons = set()
    for case in cases:
        if any("\0" in text for text in case):
            continue
        try:
            row = connection.execute(
                "SELECT p.reason, v.reason"
                " FROM graph_verify_proof(%s::json, %s::json, %s) AS p, graph_verify(%s::json) AS v",
                (*case, case[0]),
                prepare=False,
            ).fetchone()
        except psycopg.errors.InvalidTextRepresentation:
            continue  # not JSON, says the type of the argument
        except psycopg.errors.UntranslatableCharacter:
            continue
        assert row is not None
        assert verify_proof(*case).reason == row[0], case
        mine = check_export(case[0]).reason
        needs_a_key = ("unknown_key", "revoked_key", "other_graph", "bad_mac", "prompt_token_mismatch")
        assert mine == ("ok" if row[1] in needs_a_key else row[1]), case[0]
        reasons |= {row[0], mine}
    assert {"ok", "other_export", "malformed_export", "malformed_proof", "bad_signature", "malformed_key"} <= reasons
    assert {
        "malformed",
        "unordered",
        "unknown_version",
        "boundary",
        "unattested",
        "distributed",
        "params_hash_mismatch",
        "slice_id_mismatch",
        "digest_mismatch",
    } <= reasons
    if kind == "graph_messages_record":
        assert {"other_turns", "other_order", "prompt_digest_mismatch"} <= reasons

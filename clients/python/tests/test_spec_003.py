"""The examples of the specification (003, §5 to §8 and §12) over the sample, with its ids and its embeddings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import psycopg
import pytest
from conftest import ANCHOR, MISSING, QUESTION

from graph_kernel_client import (
    Conversation,
    GraphKernelError,
    SliceExport,
    aio,
    can_promote_to_atom,
    sync,
    verify_replay,
)
from graph_kernel_client.offline import check_export, verify_proof
from graph_kernel_client.retrieval import DualPlaneRetriever, MemoryRetriever, Plane
from graph_kernel_client.slice import AnchorResolver, PolicyRef, SliceClient
from graph_kernel_client.slice.anchor import AutoAnchorResolver

Embed = Callable[[str], list[float]]
FOCUSED = PolicyRef("slice_policy_v1", "1418f1bca097bcaf")


def test_slice_client(connection: psycopg.Connection[Any]) -> None:  # §5.2
    async def example() -> None:
        client = SliceClient(timeout=30.0)
        slice_export = await client.get_slice(anchor_turn_id=ANCHOR, policy_ref=FOCUSED)
        assert (slice_export.slice_id, len(slice_export.turn_ids), slice_export.edge_count) == (
            "23741c917101a898",
            28,
            32,
        )
        assert slice_export.policy_ref == FOCUSED and slice_export.is_admissible(ANCHOR)
        assert (await client.get_slice(ANCHOR)).slice_id == "aa4ddb424fcdabb9"

        slices = await client.get_slice_batch(anchor_turn_ids=["turn1", ANCHOR, MISSING], policy_ref=FOCUSED)
        assert [export.slice_id for export in slices] == ["23741c917101a898"]
        assert [(error.anchor_turn_id, error.word) for error in slices.errors] == [
            ("turn1", "INVALID_TURN_ID"),
            (MISSING, "ANCHOR_NOT_FOUND"),
        ]

        custom_policy_ref = await client.register_policy(max_nodes=128, max_radius=5, include_siblings=True)
        assert len((await client.get_slice(ANCHOR, custom_policy_ref)).turn_ids) == 128
        assert custom_policy_ref in await client.list_policies()
        assert (await client.health())["status"] == "healthy"
        await client.close()

    asyncio.run(example())


def test_words(connection: psycopg.Connection[Any]) -> None:
    """Without a model, by the words of the question."""
    resolver, retriever = sync.AnchorResolver(connection), MemoryRetriever(connection)
    with pytest.raises(GraphKernelError) as caught:
        resolver.resolve_from_query("gapless invoice numbers")
    assert caught.value.word == "NO_WORDS"
    export = sync.SliceClient(connection).get_slice(ANCHOR)
    with pytest.raises(GraphKernelError) as caught:
        retriever.search_slice("gapless invoice numbers", export)
    assert caught.value.word == "NO_WORDS"
    latest = resolver.resolve_temporal(limit=1)[0]
    assert sync.AutoAnchorResolver(resolver).resolve(query="gapless invoice numbers") == latest
    connection.execute(
        """ALTER TABLE memory_turns ADD COLUMN words tsvector
               GENERATED ALWAYS AS (to_tsvector('pg_catalog.english', left(content_text, 100000))) STORED"""
    )
    try:
        found = retriever.search_global("gapless invoice numbers", limit=3)
        assert len(found) == 3 and "gapless" in found[0].content.lower() and not found.provenance.is_admissible
        assert found[0].metadata["strength"] == 1.0
        anchor = resolver.resolve_from_query("gapless invoice numbers")
        assert anchor == str(found[0].turn_id)
        assert sync.AutoAnchorResolver(resolver).resolve(query="gapless invoice numbers") == anchor
        assert resolver.resolve_from_query("xylophone") is None

        inside = retriever.search_slice("gapless invoice numbers", export, limit=3)
        assert len(inside) == 3 and all(export.is_admissible(result.turn_id) for result in inside)
        assert all("invoice" in result.content.lower() for result in inside)
        assert inside.provenance.query_embedding_hash is None and retriever.can_promote(inside[0], inside.provenance)
        assert all(row["matches"] for row in retriever.replay(inside.provenance))
        nowhere = retriever.search_global("xylophone", limit=3, owner="nobody")
        assert len(nowhere) == 0 and nowhere.provenance.document is not None
        assert (nowhere.provenance.retrieval_mode, nowhere.provenance.limit_returned) == ("global", 0)
        assert nowhere.provenance.filters_applied == {"owner": "nobody"} and nowhere.provenance.limit_requested == 3
        assert all(row["matches"] for row in retriever.replay(nowhere.provenance))
        assert not nowhere.provenance.is_admissible and not retriever.is_admissible_result(nowhere.provenance)
        nothing = retriever.search_slice("xylophone", export)
        assert len(nothing) == 0 and retriever.is_admissible_result(nothing.provenance)
    finally:
        connection.execute("ALTER TABLE memory_turns DROP COLUMN words")


def test_one_document_for_all(connection: psycopg.Connection[Any]) -> None:
    """Exports and records, as they are returned, as text, or as the JSON of a column."""
    client, conversation = sync.SliceClient(connection), Conversation(connection)
    conversation.append({"role": "user", "content": "x"})
    conversation.messages()
    step = conversation.record_step()
    for document in (step, step.record, json.loads(step.record), client.get_slice(ANCHOR, "lineage")):
        assert client.verify(document).valid and check_export(document).valid
        assert verify_proof(document, client.proof(document), client.public_key()).valid
    assert conversation.show(json.loads(step.record))[0].content == "x"
    conversation.clear()


def test_without_embeddings(connection: psycopg.Connection[Any], embed: Embed) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute("ALTER TABLE memory_turns DROP COLUMN embedding")
        resolver = sync.AnchorResolver(connection, embed=embed)
        with pytest.raises(GraphKernelError) as caught:
            resolver.resolve_from_query(QUESTION)
        assert caught.value.word == "NO_EMBEDDINGS"
        assert sync.AutoAnchorResolver(resolver).resolve(query=QUESTION) == resolver.resolve_temporal(limit=1)[0]


def test_tokens(connection: psycopg.Connection[Any]) -> None:
    client = sync.SliceClient(connection)
    export = client.get_slice(ANCHOR, "focused")
    assert client.verify_token(export) is True and client.verify(export).valid
    assert export.document is not None
    edited = type(export).from_json(export.document.replace('"role":"user"', '"role":"assistant"', 1))
    assert client.verify(edited).reason == "digest_mismatch" and not client.verify_token(edited)
    # Fields that are not those of the document.
    export.turn_ids.append(MISSING)
    assert client.verify_token(export) is False
    for check in (client.verify, client.proof, check_export, lambda mixed: verify_proof(mixed, "{}", "")):
        with pytest.raises(GraphKernelError) as caught:
            check(export)
        assert caught.value.word == "INVALID_EXPORT"
    of_fields = type(export)(**{k: v for k, v in edited.__dict__.items() if not k.startswith("_") and k != "document"})
    assert client.verify_token(of_fields) is True
    of_fields.slice_id = "0" * 16
    assert client.verify_token(of_fields) is False
    with pytest.raises(GraphKernelError, match="made of single fields"):
        client.verify(of_fields)


def test_proof(connection: psycopg.Connection[Any]) -> None:
    client = sync.SliceClient(connection)
    export = client.get_slice(ANCHOR, "lineage")
    row = connection.execute(
        "SELECT valid FROM graph_verify_proof(%s::json, %s::json, %s)",
        (export.document, client.proof(export), client.public_key()),
    ).fetchone()
    assert row == (True,)


def test_anchors(connection: psycopg.Connection[Any], embed: Embed) -> None:  # §5.3, §5.4
    session, latest = connection.execute(
        "SELECT session_id, id::text FROM memory_turns ORDER BY created_at DESC, id LIMIT 1"
    ).fetchall()[0]

    async def example() -> None:
        resolver = AnchorResolver(embed=embed)
        assert await resolver.resolve_explicit(ANCHOR) == ANCHOR
        assert await resolver.resolve_explicit(MISSING) is None
        with pytest.raises(GraphKernelError) as caught:
            await resolver.resolve_explicit("turn_uuid")
        assert caught.value.code == "INVALID_TURN_ID"
        assert await resolver.resolve_from_session(session) == latest
        assert await resolver.resolve_from_session("no such session") is None
        nearest = "42cf2e38-23b6-526e-9986-c9360dae1b4d"
        assert await resolver.resolve_from_query(query=QUESTION) == nearest
        assert await resolver.resolve_from_query(query="authentication flow", embedding=embed(QUESTION)) == nearest
        assert (await resolver.resolve_temporal(limit=5))[0] == latest

        connection.execute("ALTER TABLE memory_turns ADD COLUMN project_id text")
        try:
            connection.execute("UPDATE memory_turns SET project_id = 'proj_123' WHERE id = %s", (ANCHOR,))
            assert await resolver.resolve_temporal(limit=5, project_id="proj_123") == [ANCHOR]
            assert await resolver.resolve_temporal(limit=5, project_id="other") == []
        finally:
            connection.execute("ALTER TABLE memory_turns DROP COLUMN project_id")

        auto_resolver = AutoAnchorResolver(resolver)
        asked = {"query": "auth flow", "embedding": embed(QUESTION)}
        assert await auto_resolver.resolve(turn_id=ANCHOR, session_id=session, **asked) == ANCHOR
        assert await auto_resolver.resolve(turn_id=None, session_id=session, **asked) == latest
        assert await auto_resolver.resolve(turn_id=MISSING, session_id="none", **asked) == nearest
        assert await auto_resolver.resolve() == latest

    asyncio.run(example())


def test_the_record_of_nothing_is_of_the_question_whatever_is_set(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    export = sync.SliceClient(connection).get_slice(ANCHOR)
    vector = [n / 3 for n in range(1, 385)]
    for digits in (1, 0, -15):
        monkeypatch.setenv("PGOPTIONS", f"-c extra_float_digits={digits}")
        with MemoryRetriever() as retriever:
            for found in (
                retriever.search_slice(QUESTION, export, min_similarity=0.9999999, min_salience=0.1, embedding=vector),
                retriever.search_global("", min_similarity=0.9999999, embedding=vector),
            ):
                assert not list(found) and not found.provenance.retrieved_turn_ids
                assert all(row["matches"] for row in retriever.replay(found.provenance, embedding=vector)), digits


class OwnFloat:
    """A number that is no `float`, as numpy's are."""

    def __float__(self) -> float:
        return 0.99


class OwnInt:
    def __index__(self) -> int:
        return 7


@pytest.mark.parametrize("least", [0.99, Decimal("0.99"), Fraction(99, 100), "0.99", OwnFloat()])
def test_the_record_of_nothing_found_is_of_the_search_that_was_made(
    connection: psycopg.Connection[Any], embed: Embed, least: Any
) -> None:
    retriever = MemoryRetriever(connection, embed=embed)
    export = sync.SliceClient(connection).get_slice(ANCHOR)
    limit: Any = OwnInt()
    for found in (
        retriever.search_slice(QUESTION, export, limit, min_similarity=least, min_salience=least),
        retriever.search_slice(QUESTION, export, limit, min_salience=least, owner="nobody"),
        retriever.search_global(QUESTION, limit, min_similarity=least),
    ):
        assert not list(found) and not found.provenance.retrieved_turn_ids
        assert found.provenance.limit_requested == 7
        assert all(row["matches"] for row in retriever.replay(found.provenance, query=QUESTION))


@pytest.mark.parametrize("least", [float("nan"), float("inf"), 10**400, "much", [1], 1j])
def test_what_is_no_number_is_no_limit(connection: psycopg.Connection[Any], embed: Embed, least: Any) -> None:
    retriever = MemoryRetriever(connection, embed=embed)
    export = sync.SliceClient(connection).get_slice(ANCHOR)
    with pytest.raises(GraphKernelError, match="min_similarity is no finite number"):
        retriever.search_slice(QUESTION, export, min_similarity=least)
    with pytest.raises(GraphKernelError, match="min_salience is no finite number"):
        retriever.search_slice(QUESTION, export, min_salience=least)
    with pytest.raises(GraphKernelError, match="min_similarity is no finite number"):
        retriever.search_global(QUESTION, min_similarity=least)
    for search in (lambda: retriever.search_slice(QUESTION, export, 1.5), lambda: retriever.search_global("", None)):  # type: ignore[arg-type]
        with pytest.raises(GraphKernelError, match="no limit: "):
            search()


def test_search(connection: psycopg.Connection[Any], embed: Embed) -> None:  # §6.2, §7.2, §7.3, §12
    retriever = MemoryRetriever(embed=embed)
    slice_export = sync.SliceClient(connection).get_slice(ANCHOR)
    results = retriever.search_slice(query=QUESTION, slice_export=slice_export, limit=3)
    assert results.provenance.is_admissible is True
    assert results.provenance.slice_id == slice_export.slice_id
    assert [str(found.turn_id)[:8] for found in results] == ["42cf2e38", "10eae790", "95484ab0"]
    assert results[0].similarity == pytest.approx(0.61118174, abs=1e-6)
    assert results[0].role == "assistant" and results[0].content and results[0].metadata["rank"] == 1
    assert all(slice_export.is_admissible(found.turn_id) for found in results)

    assert all(can_promote_to_atom(found, results.provenance) for found in results)
    assert retriever.is_admissible_result(results.provenance)
    assert retriever.can_promote(results[0], results.provenance)
    assert not retriever.can_promote(ANCHOR, results.provenance)
    replayed = retriever.search_slice(QUESTION, slice_export, 3)
    assert verify_replay(results.provenance, replayed)
    assert all(row["matches"] for row in retriever.replay(results.provenance))

    # What an application changes is what the server does not take.
    results.provenance.retrieved_turn_ids.append(ANCHOR)
    assert not retriever.is_admissible_result(results.provenance)

    everywhere = retriever.search_global(query=QUESTION, limit=10)
    assert everywhere.provenance.is_admissible is False and everywhere.provenance.slice_id is None
    assert len(everywhere) == 10 and not retriever.is_admissible_result(everywhere.provenance)
    assert len(retriever.search(QUESTION, limit=2)) == 2
    unlike = retriever.search_global(QUESTION, min_similarity=0.99)
    assert len(unlike) == 0 and unlike.provenance.filters_applied == {"min_similarity": pytest.approx(0.99)}
    assert unlike.provenance.query_embedding_hash == results.provenance.query_embedding_hash

    # No turn is without an embedding: that nothing was found is itself admissible, as the server says.
    nothing = retriever.search_slice(QUESTION, slice_export, min_similarity=0.99)
    assert len(nothing) == 0 and nothing.provenance.limit_returned == 0
    assert nothing.provenance.is_admissible and not nothing.provenance.admissibility_shortfall
    assert retriever.is_admissible_result(nothing.provenance)
    assert nothing.provenance.query_embedding_hash == results.provenance.query_embedding_hash
    assert nothing.provenance.filters_applied == {"min_similarity": pytest.approx(0.99)}
    of_nobody = retriever.search_slice(QUESTION, slice_export, 7, min_salience=0.25, owner="nobody").provenance
    assert (of_nobody.filters_applied, of_nobody.limit_requested) == ({"min_salience": 0.25, "owner": "nobody"}, 7)
    assert not of_nobody.admissibility_shortfall
    with connection.transaction(force_rollback=True):
        connection.execute("UPDATE memory_turns SET embedding = NULL WHERE id = %s", (ANCHOR,))
        inside = MemoryRetriever(connection, embed=embed)
        short = inside.search_slice(QUESTION, slice_export, min_similarity=0.99)
        assert len(short) == 0 and short.provenance.admissibility_shortfall and not short.provenance.is_admissible
        found = inside.search_slice(QUESTION, slice_export, 1)
        assert len(found) == 1 and not found.provenance.admissibility_shortfall


def test_the_attested_policy_takes_the_same_slice(connection: psycopg.Connection[Any]) -> None:
    client = sync.SliceClient(connection)
    inputs = {"pins": [MISSING], "seeds": {"944708e3-3cb7-565f-a2fc-971543aaaa99": 0.9}, "recall_decay": 0.123456}
    for policy in (
        "default",
        "broad",
        "lineage",
        {"preset": "chat", **inputs},
        {"phase_weights": {"planning": -0.000001}},
    ):
        export = client.get_slice(ANCHOR, policy)
        assert client.get_slice(ANCHOR, export.policy).document == export.document


def test_search_of_a_slice_that_has_changed(connection: psycopg.Connection[Any], embed: Embed) -> None:
    """The export is what is searched, whatever has become of its slice."""
    retriever = MemoryRetriever(connection, embed=embed)
    client = sync.SliceClient(connection)
    slice_export = client.get_slice(ANCHOR)
    before = retriever.search_slice(QUESTION, slice_export, 1000)
    edges = connection.execute(
        "SELECT parent_turn_id, edge_type FROM memory_turn_edges WHERE child_turn_id = %s", (ANCHOR,)
    ).fetchall()
    connection.execute("DELETE FROM memory_turn_edges WHERE child_turn_id = %s", (ANCHOR,))
    try:
        assert client.get_slice(ANCHOR).slice_id != slice_export.slice_id
        after = retriever.search_slice(QUESTION, slice_export, 1000)
        assert verify_replay(before.provenance, after) and after.provenance.is_admissible
        assert retriever.can_promote(after[0], after.provenance)
    finally:
        for parent, edge_type in edges:
            connection.execute("INSERT INTO memory_turn_edges VALUES (%s, %s, %s)", (parent, ANCHOR, edge_type))
    assert client.get_slice(ANCHOR).slice_id == slice_export.slice_id


def test_search_of_what_is_no_signed_slice(connection: psycopg.Connection[Any], embed: Embed) -> None:
    retriever = MemoryRetriever(connection, embed=embed)
    slice_export = sync.SliceClient(connection).get_slice(ANCHOR)
    assert slice_export.document is not None
    edited = SliceExport.from_json(slice_export.document.replace('"role":"user"', '"role":"assistant"', 1))
    with pytest.raises(GraphKernelError) as caught:
        retriever.search_slice(QUESTION, edited)
    assert (caught.value.word, caught.value.reason) == ("NOT_ADMISSIBLE", "digest_mismatch")
    with connection.transaction(force_rollback=True):
        connection.execute("DELETE FROM memory_turn_edges WHERE child_turn_id = %s", (ANCHOR,))
        # Nobody signs what is not committed: what was taken before is found in, but nothing of it is to be promoted.
        found = retriever.search_slice(QUESTION, slice_export)
        assert len(found) and not retriever.is_admissible_result(found.provenance)
        unattested = sync.SliceClient(connection).get_slice(ANCHOR)
        assert unattested.admissibility_token is None
        with pytest.raises(GraphKernelError) as caught:
            retriever.search_slice(QUESTION, unattested)
        assert (caught.value.word, caught.value.reason) == ("NOT_ADMISSIBLE", "unattested")
    fields = {key: value for key, value in edited.__dict__.items() if not key.startswith("_") and key != "document"}
    with pytest.raises(GraphKernelError) as caught:
        retriever.search_slice(QUESTION, SliceExport(**fields))
    assert caught.value.word == "INVALID_EXPORT"


def test_coroutines(connection: psycopg.Connection[Any], embed: Embed) -> None:
    async def later(text: str) -> list[float]:
        await asyncio.sleep(0)
        return embed(text)

    async def example() -> None:
        async with aio.Database() as database:
            client, retriever = aio.SliceClient(database), aio.MemoryRetriever(database, embed=later)
            export = await client.get_slice(ANCHOR)
            # More at once than the connection takes.
            found = await asyncio.gather(*(retriever.search_slice(QUESTION, export, 3) for _ in range(8)))
            assert {str(results[0].turn_id)[:8] for results in found} == {"42cf2e38"}

    asyncio.run(example())


def test_two_planes(connection: psycopg.Connection[Any], embed: Embed) -> None:
    export = sync.SliceClient(connection).get_slice(ANCHOR)
    connection.execute(
        """CREATE TEMP TABLE atoms (id text, content text, embedding real[], source_turn_ids uuid[],
                                    source_slice_id text);
           CREATE TEMP TABLE proposals (id text, content text, embedding real[], source_atoms text[],
                                        source_slice_id text)"""
    )
    near = embed(QUESTION)
    far = [-number for number in near]
    inside, outside = [ANCHOR], [ANCHOR, MISSING]
    for atom, vector, sources, slice_id in (
        ("near", near, inside, export.slice_id),
        ("far", far, inside, export.slice_id),
        ("outside", near, outside, export.slice_id),
        ("other slice", near, inside, "0" * 16),
        ("no sources", near, [], export.slice_id),
        ("no embedding", None, inside, export.slice_id),
        ("a number that is none", [float("nan"), *near[1:]], inside, export.slice_id),
        ("an element that is none", [None, *near[1:]], inside, export.slice_id),
    ):
        connection.execute("INSERT INTO atoms VALUES (%s, 'a', %s, %s::uuid[], %s)", (atom, vector, sources, slice_id))
    for proposal, sources in (("admitted", ["near", "far"]), ("of an atom that is not", ["near", "outside"])):
        connection.execute(
            "INSERT INTO proposals VALUES (%s, 'p', %s, %s, %s)", (proposal, near, sources, export.slice_id)
        )
    retriever = DualPlaneRetriever(
        MemoryRetriever(connection, embed=embed),
        atoms=Plane("pg_temp.atoms", sources="source_turn_ids"),
        proposals=Plane("pg_temp.proposals", sources="source_atoms"),
    )
    hits = retriever.search(QUESTION, export, limit=5)
    assert [(hit.plane, hit.id[:8]) for hit in hits] == [
        ("turn", "42cf2e38"),
        ("atom", "near"),
        ("proposal", "admitted"),
        ("turn", "10eae790"),
        ("atom", "far"),
    ]
    # Arrays of two dimensions: sources are read as the trigger reads them, an embedding is none.
    connection.execute(
        """INSERT INTO atoms VALUES ('short ids', 'a', '{1}', ARRAY[ARRAY[%s], ARRAY[%s]]::uuid[], %s),
                                    ('square', 'a', array_fill(1::real, ARRAY[384, 1]), %s::uuid[], %s)""",
        (ANCHOR, ANCHOR, export.slice_id, inside, export.slice_id),
    )
    connection.execute("INSERT INTO atoms VALUES ('short', 'a', '{1}', %s::uuid[], %s)", (inside, export.slice_id))
    again = retriever.search(QUESTION, export, limit=5)
    assert [(hit.plane, hit.id) for hit in again] == [(hit.plane, hit.id) for hit in hits]
    with pytest.raises(GraphKernelError) as caught:
        retriever.search(QUESTION, export, limit=5, embedding=[1.0, 2.0])
    assert caught.value.word == "EMBEDDING_DIMENSIONS"
    assert hits[0].score == pytest.approx(1 / 61) and hits[3].score == pytest.approx(1 / 62)
    assert hits[1].provenance["sources"] == [ANCHOR] and hits[0].provenance["mac"]
    assert hits.provenance.is_admissible
    # Nor does a superuser read what another could make a view of, with code in it.
    connection.execute("CREATE ROLE py_planes; ALTER TABLE proposals OWNER TO py_planes")
    try:
        with pytest.raises(GraphKernelError, match=r"py_planes, who owns the table .*\.proposals"):
            retriever.search(QUESTION, export, limit=5)
    finally:
        connection.execute("DROP TABLE proposals; DROP ROLE py_planes")

"""Slices with asyncpg. PGHOST, PGDATABASE and so on name a database that setup.sql has prepared."""

import asyncio
import json
from uuid import UUID

import asyncpg

ANCHOR = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c"
MISSING = "00000000-0000-4000-8000-00000000dead"


async def main():
    connection = await asyncpg.connect()

    # asyncpg asks the server for the types of parameters: no cast. The policy is a string.
    turns = await connection.fetch(
        """SELECT s.role, t.content_text
             FROM graph_slice_turns($1, $2) AS s
             JOIN memory_turns AS t ON t.id = s.turn_id
            ORDER BY s.selection_order""",
        ANCHOR,
        "focused",
    )
    assert len(turns) == 28 and turns[0]["role"] == "assistant"

    policy = json.dumps({"max_nodes": 10})
    turns = await connection.fetch("SELECT turn_id, priority FROM graph_slice_turns($1, $2)", ANCHOR, policy)
    assert len(turns) == 10 and UUID(ANCHOR) in [turn["turn_id"] for turn in turns]

    # json comes as a string, unless set_type_codec says otherwise; with ::text always.
    export = await connection.fetchval("SELECT graph_slice($1)::text", ANCHOR)
    await connection.execute("CREATE TEMP TABLE kept_slices (slice json)")
    await connection.execute("INSERT INTO kept_slices VALUES ($1::text::json)", export)
    kept = await connection.fetchrow(
        "SELECT k.slice::text AS export, v.valid, v.reason FROM kept_slices AS k, graph_verify(k.slice) AS v"
    )
    assert kept["export"] == export and kept["valid"] and kept["reason"] == "ok"

    edited = export.replace('"role":"user"', '"role":"assistant"', 1)
    verdict = await connection.fetchrow("SELECT valid, reason FROM graph_verify($1::text::json)", edited)
    assert tuple(verdict) == (False, "digest_mismatch")

    # A question's embedding is a list of floats from your model; here it is one of the sample's.
    question = await connection.fetchval(
        "SELECT embedding FROM questions WHERE question LIKE 'How are invoice numbers%'"
    )
    found = await connection.fetch(
        "SELECT turn_id, similarity, provenance FROM graph_search_slice($1, $2, limit_count => $3)", question, ANCHOR, 3
    )
    assert len(found) == 3 and found[0]["turn_id"] == UUID("42cf2e38-23b6-526e-9986-c9360dae1b4d")
    assert await connection.fetchval("SELECT graph_is_admissible_result($1)", found[0]["provenance"])

    everywhere = await connection.fetch("SELECT turn_id, similarity FROM graph_search($1, limit_count => $2)", question, 2)
    assert everywhere[0]["turn_id"] == found[0]["turn_id"]

    # Match the SQLSTATE and the word in DETAIL. asyncpg takes class 02 for warnings: NoData is not a PostgresError.
    try:
        await connection.fetch("SELECT graph_slice($1)", MISSING)
    except (asyncpg.PostgresError, asyncpg.NoData) as error:
        sqlstate, word = error.sqlstate, error.detail
    assert (sqlstate, word) == ("02000", "ANCHOR_NOT_FOUND")

    await connection.close()


asyncio.run(main())

"""Slices with psycopg 3. PGHOST, PGDATABASE and so on name a database that setup.sql has prepared."""

from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

ANCHOR = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c"
MISSING = "00000000-0000-4000-8000-00000000dead"

connection = psycopg.connect(autocommit=True)

# Rows, joined with their text. The policy is a preset or JSON, as a string.
turns = connection.execute(
    """SELECT s.role, t.content_text
         FROM graph_slice_turns(%s::uuid, %s::slice_policy) AS s
         JOIN memory_turns AS t ON t.id = s.turn_id
        ORDER BY s.selection_order""",
    (ANCHOR, "focused"),
).fetchall()
assert len(turns) == 28 and turns[0][0] == "assistant"

# Or it is a dict, wrapped in Jsonb.
turns = connection.execute(
    "SELECT turn_id, priority FROM graph_slice_turns(%s::uuid, %s::slice_policy)",
    (ANCHOR, Jsonb({"max_nodes": 10})),
).fetchall()
assert len(turns) == 10 and UUID(ANCHOR) in [turn_id for turn_id, _ in turns]

# The export as text: psycopg parses what comes as json.
(export,) = connection.execute("SELECT graph_slice(%s::uuid)::text", (ANCHOR,)).fetchone()
connection.execute("CREATE TEMP TABLE kept_slices (slice json)")
connection.execute("INSERT INTO kept_slices VALUES (%s::json)", (export,))
kept, valid, reason = connection.execute(
    "SELECT k.slice::text, v.valid, v.reason FROM kept_slices AS k, graph_verify(k.slice) AS v"
).fetchone()
assert kept == export and valid and reason == "ok"

edited = export.replace('"role":"user"', '"role":"assistant"', 1)
verdict = connection.execute("SELECT valid, reason FROM graph_verify(%s::json)", (edited,)).fetchone()
assert verdict == (False, "digest_mismatch")

# A question's embedding is a list of floats from your model; here it is one of the sample's.
(question,) = connection.execute(
    "SELECT embedding FROM questions WHERE question LIKE 'How are invoice numbers%'"
).fetchone()
found = connection.execute(
    "SELECT turn_id, similarity, provenance FROM graph_search_slice(%s::real[], %s::uuid, limit_count => %s)",
    (question, ANCHOR, 3),
).fetchall()
assert len(found) == 3 and found[0][0] == UUID("42cf2e38-23b6-526e-9986-c9360dae1b4d")

# The first row has the provenance. It is a dict, and stays what it is on the way back.
(admissible,) = connection.execute("SELECT graph_is_admissible_result(%s)", (Jsonb(found[0][2]),)).fetchone()
assert admissible is True

everywhere = connection.execute(
    "SELECT turn_id, similarity FROM graph_search(%s::real[], limit_count => %s)", (question, 2)
).fetchall()
assert everywhere[0][0] == found[0][0]

# Match the SQLSTATE and the word in DETAIL.
try:
    connection.execute("SELECT graph_slice(%s::uuid)", (MISSING,))
except psycopg.Error as error:
    sqlstate, word = error.sqlstate, error.diag.message_detail
assert (sqlstate, word) == ("02000", "ANCHOR_NOT_FOUND")

connection.close()

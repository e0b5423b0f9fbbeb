"""Slices with SQLAlchemy 2 over psycopg 3. PGHOST and so on name a database that setup.sql has prepared."""

from uuid import UUID

from sqlalchemy import ARRAY, REAL, Text, cast, create_engine, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError

ANCHOR = UUID("a9ad8365-bc0a-5da2-93e6-e37e99d95d9c")
MISSING = UUID("00000000-0000-4000-8000-00000000dead")

engine = create_engine("postgresql+psycopg://", isolation_level="AUTOCOMMIT")
connection = engine.connect()

# In text() write CAST: SQLAlchemy would read :policy::slice_policy as something else.
turns = connection.execute(
    text(
        """SELECT s.role, t.content_text
             FROM graph_slice_turns(CAST(:anchor AS uuid), CAST(:policy AS slice_policy)) AS s
             JOIN memory_turns AS t ON t.id = s.turn_id
            ORDER BY s.selection_order"""
    ),
    {"anchor": ANCHOR, "policy": "focused"},
).all()
assert len(turns) == 28 and turns[0].role == "assistant"

# With func a dict is cast to JSONB; a str would be sent as VARCHAR, for which there is no function.
policy = cast({"max_nodes": 10}, JSONB)
slice_turns = func.graph_slice_turns(ANCHOR, policy).table_valued("turn_id", "priority")
turns = connection.execute(select(slice_turns)).all()
assert len(turns) == 10 and ANCHOR in [turn.turn_id for turn in turns]

# The export as text: what comes as json is parsed.
export = connection.scalar(select(cast(func.graph_slice(ANCHOR), Text)))
connection.execute(text("CREATE TEMP TABLE kept_slices (slice json)"))
connection.execute(text("INSERT INTO kept_slices VALUES (CAST(:export AS json))"), {"export": export})
kept = connection.execute(
    text("SELECT CAST(k.slice AS text) AS export, v.valid, v.reason FROM kept_slices AS k, graph_verify(k.slice) AS v")
).one()
assert kept.export == export and kept.valid and kept.reason == "ok"

edited = export.replace('"role":"user"', '"role":"assistant"', 1)
verify = text("SELECT valid, reason FROM graph_verify(CAST(:export AS json))")
assert tuple(connection.execute(verify, {"export": edited}).one()) == (False, "digest_mismatch")

# A question's embedding is a list of floats from your model; here it is one of the sample's.
question = connection.scalar(text("SELECT embedding FROM questions WHERE question LIKE 'How are invoice numbers%'"))
searched = func.graph_search_slice(cast(question, ARRAY(REAL)), ANCHOR, cast("focused", JSONB), 3)
found = connection.execute(select(searched.table_valued("turn_id", "similarity"))).all()
assert len(found) == 3 and ANCHOR not in [row.turn_id for row in found]

everywhere = connection.execute(
    text("SELECT turn_id, similarity FROM graph_search(CAST(:question AS real[]), limit_count => :count)"),
    {"question": question, "count": 2},
).all()
assert everywhere[0].turn_id == UUID("42cf2e38-23b6-526e-9986-c9360dae1b4d")

# The driver's error is in orig.
try:
    connection.execute(select(func.graph_slice(MISSING)))
except DBAPIError as error:
    sqlstate, word = error.orig.sqlstate, error.orig.diag.message_detail
assert (sqlstate, word) == ("02000", "ANCHOR_NOT_FOUND")

connection.close()

"""Slices with Django, pandas and polars. PGHOST, PGDATABASE and so on name a database that setup.sql has prepared."""

import os

import django
import pandas
import polars
import psycopg
from django.conf import settings
from sqlalchemy import create_engine, text

ANCHOR = "a9ad8365-bc0a-5da2-93e6-e37e99d95d9c"

names = {"HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "NAME": "PGDATABASE"}
database = {"ENGINE": "django.db.backends.postgresql"} | {key: os.environ[name] for key, name in names.items()}
settings.configure(DATABASES={"default": database})
django.setup()

from django.db import connection  # noqa: E402

with connection.cursor() as cursor:
    cursor.execute("SELECT turn_id, role FROM graph_slice_turns(%s::uuid, %s::slice_policy)", [ANCHOR, "focused"])
    turns = cursor.fetchall()
assert len(turns) == 28

engine = create_engine("postgresql+psycopg://")
query = text("SELECT turn_id, priority FROM graph_slice_turns(CAST(:anchor AS uuid), CAST(:policy AS slice_policy))")
frame = pandas.read_sql_query(query, engine, params={"anchor": ANCHOR, "policy": "focused"})
assert len(frame) == 28 and frame["priority"].dtype.kind == "f"

query = "SELECT turn_id::text, priority FROM graph_slice_turns(%s::uuid, %s::slice_policy)"
frame = polars.read_database(query, psycopg.connect(), execute_options={"params": [ANCHOR, "focused"]})
assert frame.height == 28 and frame.schema["turn_id"] == polars.String

#!/usr/bin/env bash
# load.sh DIR: loads DIR/memory_turns.csv[.gz] and DIR/memory_turn_edges.csv[.gz] into the database that PG* names.
. "$(dirname "$0")/common.sh"

# csv DIR NAME: the file, plain or compressed.
csv() {
  local file
  for file in "$1/$2.csv" "$1/$2.csv.gz"; do
    if [[ -r $file ]]; then
      realpath "$file"
      return
    fi
  done
  die "no readable $1/$2.csv or $2.csv.gz"
}

# columns FILE: the header's column names, fit to stand in SQL.
columns() {
  local header=''
  IFS= read -r header < <(gzip -dcf -- "$1") || true
  header=$(tr -d '\r" ' <<<"${header#$'\xef\xbb\xbf'}")
  [[ $header =~ ^[a-z_]+(,[a-z_]+)*$ ]] || die "the first line of $1 does not name columns: $header"
  note "$header"
}

turns=$(csv "${1:?usage: load.sh DIR}" memory_turns)
edges=$(csv "$1" memory_turn_edges)
turn_columns=$(columns "$turns")
edge_columns=$(columns "$edges")
export turns edges # read by the shell below \copy, so that a path needs no quoting in SQL

psql -X -q -v ON_ERROR_STOP=1 --single-transaction -f - <<SQL
-- a time stamp without a zone is UTC
SET TimeZone = 'UTC';
CREATE TEMP TABLE staged_turns AS SELECT $turn_columns FROM public.memory_turns WITH NO DATA;
\copy staged_turns ($turn_columns) from program 'gzip -dcf -- "\$turns"' with (format csv, header)
INSERT INTO public.memory_turns ($turn_columns) SELECT $turn_columns FROM staged_turns;
\echo :ROW_COUNT 'turns loaded'

CREATE TEMP TABLE staged_edges (parent_turn_id uuid, child_turn_id uuid, edge_type text);
\copy staged_edges ($edge_columns) from program 'gzip -dcf -- "\$edges"' with (format csv, header)
UPDATE staged_edges SET edge_type = 'default' WHERE edge_type IS NULL;
\set untyped :ROW_COUNT
CREATE TEMP TABLE new_edges AS SELECT DISTINCT parent_turn_id, child_turn_id, edge_type FROM staged_edges;
SELECT (SELECT count(*) FROM staged_edges) - count(*) AS duplicates,
       count(*) FILTER (WHERE p.id IS NULL OR c.id IS NULL) AS dangling,
       bool_or(p.id IS NULL OR c.id IS NULL) IS TRUE AS any_dangling
  FROM new_edges e
  LEFT JOIN public.memory_turns p ON p.id = e.parent_turn_id
  LEFT JOIN public.memory_turns c ON c.id = e.child_turn_id \gset
\if :any_dangling
SELECT format('ALTER TABLE public.memory_turn_edges DROP CONSTRAINT %I', conname)
  FROM pg_constraint
 WHERE conrelid = 'public.memory_turn_edges'::regclass AND contype = 'f' \gexec
\echo :dangling 'edges name a turn that is not there: kept, the foreign keys of memory_turn_edges are dropped'
\endif
INSERT INTO public.memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
SELECT parent_turn_id, child_turn_id, edge_type FROM new_edges;
\echo :ROW_COUNT 'edges loaded,' :duplicates 'duplicates dropped,' :untyped 'without a type read as default'
ANALYZE public.memory_turns, public.memory_turn_edges;
SQL

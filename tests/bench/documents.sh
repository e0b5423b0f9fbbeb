#!/usr/bin/env bash
# documents.sh DIR: how small slices and records of prompts of recorded sessions are as graph_document_bytes, beside
# their JSON by zstd, and beside what a table keeps of it. Loads the graph in the folder into a database of its own on
# the server that PG* names, and needs the program zstd. It counts, and times roughly.
. "$(dirname "$0")/../harness/common.sh"

(($# == 1)) || die 'usage: documents.sh DIR'
command -v zstd >/dev/null || die 'it needs zstd'
folder=$(realpath "$1")
psql() { command psql -X -q -v ON_ERROR_STOP=1 -P pager=off "$@"; }
psql -c 'DROP DATABASE IF EXISTS bench_documents' -c 'CREATE DATABASE bench_documents'
export PGDATABASE=bench_documents
psql -c 'CREATE EXTENSION graph_kernel' -c 'SELECT graph_kernel.create_tables()' >/dev/null
"$root/tests/harness/load.sh" "$folder"
psql -f "$root/tests/bench/documents.sql"

# Each document by itself, at the level of graph_document_bytes and at the highest.
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
psql -At -c 'SELECT document FROM kept ORDER BY n' | split -l 1 -a 5 -d - "$files/"
for level in 12 19; do
  for file in "$files"/?????; do
    note "$(zstd -q -c -"$level" <"$file" | wc -c)"
  done | psql -c "CREATE TABLE zstd_$level (n serial, bytes int)" -c "\\copy zstd_$level (bytes) from stdin"
done
psql -c "SELECT kind, policy, hashes, count(*) AS documents, median(length(document))::int AS json,
                round(median(100.0 * length(packed) / length(document)), 1) AS bytes,
                round(median(100.0 * z12.bytes / length(document)), 1) AS zstd_12,
                round(median(100.0 * z19.bytes / length(document)), 1) AS zstd_19,
                round(median(100.0 * pg_column_size(in_lz4) / length(document)), 1) AS lz4,
                round(median(100.0 * pg_column_size(in_pglz) / length(document)), 1) AS pglz
           FROM kept JOIN zstd_12 AS z12 USING (n) JOIN zstd_19 AS z19 USING (n)
          GROUP BY ROLLUP (hashes, kind, policy) ORDER BY hashes, kind, policy"

#!/usr/bin/env bash
# retrieval.sh DIR…: recall and time of a search within a slice, beside an approximate index with a filter behind it.
# Loads the graphs in the folders into a database of its own on the server that PG* names.
# The embeddings are made by feature hashing (words and their trigrams, 128 dimensions): no model, but texts
# that share words lie close. shared_buffers and the machine's load matter: run it twice.
. "$(dirname "$0")/../harness/common.sh"

(($# > 0)) || die 'usage: retrieval.sh DIR…'
psql() { command psql -X -q -v ON_ERROR_STOP=1 -P pager=off "$@"; }
psql -c 'DROP DATABASE IF EXISTS bench_retrieval' -c 'CREATE DATABASE bench_retrieval'
export PGDATABASE=bench_retrieval
psql -c 'CREATE EXTENSION graph_kernel' -c 'CREATE EXTENSION vector' -c 'SELECT graph_kernel.create_tables()' >/dev/null
for folder in "$@"; do "$root/tests/harness/load.sh" "$folder"; done
psql -f "$root/tests/bench/retrieval.sql"

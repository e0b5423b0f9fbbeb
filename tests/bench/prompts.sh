#!/usr/bin/env bash
# prompts.sh DIR…: what an agent would send at each step of recorded sessions, under policies and without one: tokens,
# how much of them is the beginning of the step before, and what is lost. Loads the graphs in the folders into a
# database of its own on the server that PG* names. It counts, and times nothing.
. "$(dirname "$0")/../harness/common.sh"

(($# > 0)) || die 'usage: prompts.sh DIR…'
psql() { command psql -X -q -v ON_ERROR_STOP=1 -P pager=off "$@"; }
psql -c 'DROP DATABASE IF EXISTS bench_prompts' -c 'CREATE DATABASE bench_prompts'
export PGDATABASE=bench_prompts
psql -c 'CREATE EXTENSION graph_kernel' -c 'SELECT graph_kernel.create_tables()' >/dev/null
for folder in "$@"; do "$root/tests/harness/load.sh" "$folder"; done
psql -f "$root/tests/bench/prompts.sql"

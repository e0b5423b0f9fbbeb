#!/usr/bin/env bash
# kept.sh DIR [SLICES [ROUNDS]]: how long graph_kernel.refresh_kept takes over kept slices of the graph in the folder,
# as it was and after changes in a hundredth of the turns, and whether it names exactly the slices that a comparison of
# all names. Loads the graph into a database of its own on the server that PG* names. Ends with an error where a round
# names others.
. "$(dirname "$0")/../harness/common.sh"

(($# >= 1 && $# <= 3)) || die 'usage: kept.sh DIR [SLICES [ROUNDS]]'
folder=$(realpath "$1")
psql() { command psql -X -q -v ON_ERROR_STOP=1 -P pager=off "$@"; }
psql -c 'DROP DATABASE IF EXISTS bench_kept' -c 'CREATE DATABASE bench_kept'
export PGDATABASE=bench_kept
psql -c 'CREATE EXTENSION graph_kernel' -c 'SELECT graph_kernel.create_tables()' >/dev/null
"$root/tests/harness/load.sh" "$folder"
psql -v slices="${2:-10000}" -f "$root/tests/bench/kept.sql"
for ((round = 1; round <= ${3:-5}; round++)); do
  psql -v round="$round" -f "$root/tests/bench/kept_round.sql"
done
median='percentile_cont(0.5) WITHIN GROUP (ORDER BY'
figures=
for column in unchanged unchanged_cpu refreshed refreshed_cpu named load; do
  figures+=", format('%s (%s to %s)', round(($median $column))::numeric, 2), round(min($column)::numeric, 2),
                     round(max($column)::numeric, 2)) AS $column"
done
psql -x -c "SELECT count(*) AS rounds $figures FROM rounds" \
  -c "SELECT pg_size_pretty(pg_total_relation_size('slice_store')) AS store,
             pg_size_pretty(pg_relation_size('slice_store_turns_idx')) AS index_of_turns,
             count(*) AS documents FROM slice_store"
[[ $(psql -At -c 'SELECT bool_and(missed = 0 AND wrong = 0 AND named > 0) FROM rounds') == t ]] ||
  die 'refresh_kept has not named what a comparison names'

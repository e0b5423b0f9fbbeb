-- Searches and their records.
SELECT {a.id}, {a.provenance} FROM {atoms} AS a

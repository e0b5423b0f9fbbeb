-- Rows that promote: the document that each refers to, or carries, and the turns that it names.
SELECT {a.reference}, {a.document}, {a.turns} FROM {atoms} AS a

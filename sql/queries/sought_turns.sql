-- …: the turns that are sought, and the names of their sessions as they are read.
SELECT {t.id}, {name} FROM {turns} AS t WHERE {is_sought}

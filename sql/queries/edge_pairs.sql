-- Both ends of every edge, ascending.
[[SELECT {e.parent}, {e.child} FROM {edges} AS e]] ORDER BY 1, 2

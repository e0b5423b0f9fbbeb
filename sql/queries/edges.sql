-- Both ends of every edge.
[[SELECT {e.parent}, {e.child} FROM {edges} AS e]]

-- What a search has found for each anchor, 128 turns by their hashes, as a policy; and the turns of its slice.
CREATE TABLE recall (anchor uuid PRIMARY KEY, policy text NOT NULL, turns uuid[]);

-- The same turns with their parents and children, by three plain statements: what one would write without an extension.
-- An easier question than the slice's: it is known which turns, there are no strengths and no fingerprints.
CREATE FUNCTION around(anchor uuid) RETURNS SETOF memory_turns LANGUAGE sql STABLE AS $$
    SELECT t.* FROM recall AS r, unnest(r.turns) AS s (id) JOIN memory_turns AS t ON t.id = s.id
    WHERE r.anchor = around.anchor
    UNION ALL
    SELECT t.* FROM recall AS r, unnest(r.turns) AS s (id)
    JOIN memory_turn_edges AS e ON e.child_turn_id = s.id JOIN memory_turns AS t ON t.id = e.parent_turn_id
    WHERE r.anchor = around.anchor
    UNION ALL
    SELECT t.* FROM recall AS r, unnest(r.turns) AS s (id)
    JOIN memory_turn_edges AS e ON e.parent_turn_id = s.id JOIN memory_turns AS t ON t.id = e.child_turn_id
    WHERE r.anchor = around.anchor
$$;

-- Prepares a database with the sample conversation for the examples: embeddings of its turns, and of five questions.
-- psql reads it at the root of the repository.
ALTER TABLE memory_turns ADD COLUMN embedding real[];
CREATE TEMP TABLE embedded (turn_id uuid, embedding real[]);
\copy embedded from sql/sample/memory_turn_embeddings.csv csv header
UPDATE memory_turns AS t SET embedding = e.embedding FROM embedded AS e WHERE e.turn_id = t.id;
CREATE TABLE questions (question text PRIMARY KEY, embedding real[]);
\copy questions from sql/sample/questions.csv csv header

"""A thousand prompts, in each form of a provider, read by the types of the providers' own packages. The database is that
of the examples; tests/server/providers.rs checks the same prompts by what the providers say of them."""

import json
import sys
from pathlib import Path

import psycopg
from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter
from typing_extensions import NotRequired, TypedDict


class Plain(TypedDict):
    role: str
    content: str


class Anthropic(TypedDict):
    system: NotRequired[str]
    messages: list[MessageParam]


# Which member of a prompt is read as which type, and what must not be read.
READERS = {
    "openai": ("messages", TypeAdapter(list[ChatCompletionMessageParam]), [{"role": "tool", "content": "x"}]),
    "responses": ("input", TypeAdapter(list[ResponseInputItemParam]), [{"type": "function_call", "name": "f"}]),
    "anthropic": (None, TypeAdapter(Anthropic), {"messages": [{"role": "user"}]}),
    "plain": ("messages", TypeAdapter(list[Plain]), [{"role": "user"}]),
}


def read(form, prompt):
    member, adapter, _ = READERS[form]
    # Lists are typed as iterables, which are read when they are gone through.
    return json.loads(adapter.dump_json(adapter.validate_python(prompt[member] if member else prompt)))


for form, (member, _, broken) in READERS.items():
    try:
        read(form, {member: broken} if member else broken)
    except Exception:
        continue
    sys.exit(f"{form}: {broken} is read")

with psycopg.connect(autocommit=True) as connection:
    connection.execute("DROP SCHEMA IF EXISTS providers CASCADE")
    connection.execute(Path(__file__).with_name("providers.sql").read_text())
    connection.execute("SET graph_kernel.graph = 'providers'")
    prompts = connection.execute(
        """SELECT p.n, f.format, graph_messages_json(t.record, f.format)
             FROM providers.prompts AS p,
                  LATERAL (SELECT graph_messages_record(p.anchor, p.policy::slice_policy) AS record OFFSET 0) AS t,
                  unnest(ARRAY['openai', 'responses', 'anthropic', 'plain']) AS f(format)"""
    ).fetchall()
    connection.execute("RESET graph_kernel.graph; SELECT graph_kernel.unbind_tables('providers')")
    connection.execute("DROP SCHEMA providers CASCADE")

assert len(prompts) == 4000, len(prompts)
for n, form, prompt in prompts:
    try:
        read(form, prompt)
    except Exception as error:
        sys.exit(f"{form} {n}: {error}\n{prompt}")

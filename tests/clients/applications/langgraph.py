"""A graph with a subgraph in a subgraph, and a fork, kept by PostgresSaver."""

import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    log: Annotated[list, operator.add]


def graph(name, node, **options):
    builder = StateGraph(State)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder.compile(**options)


with PostgresSaver.from_conn_string("") as saver:
    saver.setup()
    # In thread a the subgraphs keep what they did before; in thread b, as by default, each call has a namespace of its own.
    for thread, keeps in (("a", True), ("b", None)):
        inner = graph("leaf", lambda state: {"log": ["leaf"]}, checkpointer=keeps)
        middle = graph("inner", inner, checkpointer=keeps)
        outer = graph("middle", middle, checkpointer=saver)
        config = {"configurable": {"thread_id": thread}}
        outer.invoke({"log": ["in"]}, config)
    history = list(outer.get_state_history(config))
    outer.update_state(history[-1].config, {"log": ["fork"]})

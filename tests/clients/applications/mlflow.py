"""A trace in MLflow's store."""

import mlflow
from mlflow.entities import SpanType

mlflow.set_tracking_uri("postgresql+psycopg2://")
mlflow.set_experiment("shop")


@mlflow.trace(span_type=SpanType.AGENT)
def clerk(question):
    track("p1")
    return write(question)


@mlflow.trace(span_type=SpanType.TOOL)
def track(parcel):
    return 'in "transit"'


@mlflow.trace(span_type=SpanType.CHAT_MODEL)
def write(question):
    return "It arrives today." if "parcel" in question else "It is cancelled."


clerk("Where is my parcel?")
clerk("Cancel my order.")
mlflow.flush_trace_async_logging()

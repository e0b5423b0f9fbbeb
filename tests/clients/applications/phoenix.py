"""Traces in Phoenix's tables, made and filled by its models."""

import asyncio
import importlib.util
import sys
from datetime import datetime, timedelta, timezone
from types import ModuleType

from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

# The package's __init__ loads its web server, and what that needs; the models need none of it.
package = ModuleType("phoenix")
package.__path__ = importlib.util.find_spec("phoenix").submodule_search_locations
sys.modules["phoenix"] = package
from phoenix.db import models  # noqa: E402

START = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)


async def main():
    engine = create_async_engine("postgresql+psycopg://")
    async with engine.begin() as connection:
        await connection.run_sync(models.Base.metadata.create_all)
    async with AsyncSession(engine) as session:
        project = models.Project(name="shop")
        session.add(project)
        await session.flush()
        rows = [
            ("a", 0, "Where is my parcel?", "in transit", "It arrives today."),
            ("b", 10, "Cancel my order.", "open", "It is cancelled."),
            ("a", 20, "When exactly?", "at 14:00", "At two."),
        ]
        for number, (name, second, question, found, answer) in enumerate(rows, 1):
            begin = START + timedelta(seconds=second)
            trace = models.Trace(
                project_rowid=project.id,
                trace_id=f"{number:032x}",
                start_time=begin,
                end_time=begin + timedelta(seconds=3),
            )
            session.add(trace)
            await session.flush()
            spans = [("clerk", "AGENT", answer), ("track", "TOOL", found), ("write", "LLM", answer)]
            for index, (span, kind, output) in enumerate(spans):
                session.add(
                    models.Span(
                        trace_rowid=trace.id,
                        span_id=f"{number}{index}".zfill(16),
                        parent_id=f"{number}0".zfill(16) if index else None,
                        name=span,
                        span_kind=kind,
                        start_time=begin + timedelta(seconds=index),
                        end_time=begin + timedelta(seconds=index + 1),
                        attributes={
                            "session": {"id": name},
                            "input": {"value": question},
                            "output": {"value": output},
                        },
                        events=[],
                        status_code="OK",
                        status_message="",
                        cumulative_error_count=0,
                        cumulative_llm_token_count_prompt=0,
                        cumulative_llm_token_count_completion=0,
                    )
                )
        await session.commit()
    await engine.dispose()


asyncio.run(main())

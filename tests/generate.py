"""Writes the generated documents anew: JSON schemas of the contracts. CI compares, never writes."""

import json
from pathlib import Path
from typing import Any

import msgspec

from hub.events import Event
from hub.model import Job, Outcome, Session, Task

REPO = Path(__file__).resolve().parent.parent
SCHEMAS: dict[str, Any] = {
    "event": Event,
    "session": Session,
    "job": Job,
    "outcome": Outcome,
    "task": Task,
}


def documents() -> dict[Path, str]:
    """Every generated file and what it must say."""
    return {
        REPO / "docs" / "schema" / f"{name}.json": _schema(kind) for name, kind in SCHEMAS.items()
    }


def _schema(kind: Any) -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(kind),
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")

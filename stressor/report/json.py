"""The report for programs: the facts as they are, under a schema version of their own."""

import json

from stressor.journal import encode
from stressor.report.facts import RunReport

SCHEMA_VERSION = 1


def render(report: RunReport) -> str:
    """One JSON object, ending in a newline. `verdict`, `exit_code` (null: the run did not end),
    `next_command` and `schema_version` come first; unknown is null."""
    facts = encode(report)
    assert isinstance(facts, dict)
    first = ("verdict", "exit_code", "next_command")
    head = {"schema_version": SCHEMA_VERSION, **{name: facts.pop(name) for name in first}}
    return json.dumps({**head, **facts}, indent=2, allow_nan=False) + "\n"

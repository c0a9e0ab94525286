"""What cannot do what a run needs is refused before anything is asked, in one line that says what to change.

A row of `refused_servers.jsonl`: a server, the model's settings, what a program needs of it, the error, and words that
it has and has not.
"""

import json
from typing import Any

import pytest
from engine_calls import read_cases, spec_of
from other_servers import wire_of
from wire_server import serving

from medexam import errors
from medexam.serve import TIMING, build_engine
from medexam.specs import EngineNeeds


@pytest.mark.parametrize("row", read_cases("refused_servers"), ids=json.dumps)
async def test_a_server_is_refused_for_what_it_is(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 2)
    needs = EngineNeeds(**dict.fromkeys(row["needs"], True))
    with serving(wire_of(row)) as wire, pytest.raises(getattr(errors, row["error"]), match=row["said"]) as caught:
        await build_engine(spec_of(wire, **row["model"]), needs)
    assert "\n" not in str(caught.value)
    assert row.get("unsaid", "\n") not in str(caught.value)

"""The probe believes what it sees, and says what to do about the rest."""

import pytest
from engine_calls import spec_of
from wire_server import Wire, serving

from medexam.errors import EndpointUnreachableError, SpecError
from medexam.serve import build_engine, normalise_address
from table_cases import read_table


async def test_endpoints_must_serve_one_model() -> None:
    with serving(Wire()) as one, serving(Wire(models=("other",))) as two:
        with pytest.raises(EndpointUnreachableError, match="different models"):
            await build_engine(spec_of(one, two))
        with pytest.raises(EndpointUnreachableError, match="serves other, not tiny"):
            await build_engine(spec_of(one, two, name="tiny"))


@pytest.mark.parametrize(*read_table("addresses"))
def test_one_address_is_written_in_many_ways(written: str, address: str) -> None:
    assert normalise_address(written) == address


@pytest.mark.parametrize(*read_table("refused_addresses"))
def test_addresses_that_are_none(address: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        normalise_address(address)
    assert "secret" not in str(caught.value)

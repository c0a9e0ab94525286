"""What counters say of the energy of GPUs: NVML's, and those in the text of a server's metrics."""

from types import SimpleNamespace

import pytest
from wire_server import Wire, serving

from medexam.model_identity import ModelIdentity
from medexam.serve import EngineInfo
from medexam.serve.pool.energy import EnergyCount, count_energy, count_local_energy

TRITON = 'nv_energy_consumption{gpu_uuid="GPU-1"} 1500.5\nnv_energy_consumption{gpu_uuid="GPU-2"} 5e2\nup 1\n'
EXPORTER = 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-3"} 2000000\n'


class NVMLError(Exception):
    """As NVML's own."""


def _nvml(*millijoules):
    """Be NVML of a machine with cards; one without a counter is None."""

    def read(card):
        if card is None:
            raise NVMLError("Not Supported")
        return card

    return SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(millijoules),
        nvmlDeviceGetHandleByIndex=lambda index: millijoules[index],
        nvmlDeviceGetTotalEnergyConsumption=read,
        NVMLError=NVMLError,
    )


def _info(*endpoints: str, **details: str) -> EngineInfo:
    identity = ModelIdentity(engine="vllm", name="m")
    return EngineInfo(engine="vllm", model="m", identity=identity, endpoints=endpoints, details=details)


@pytest.mark.parametrize(
    ("cards", "count"), [((1500, 500), EnergyCount(2.0, 2, "nvml")), ((), None), ((1500, None), None)]
)
def test_the_cards_of_this_machine_are_added(cards, count) -> None:
    assert count_local_energy(_nvml(*cards)) == count


async def test_servers_that_all_tell_are_added() -> None:
    with serving(Wire(metrics=TRITON)) as one, serving(Wire(metrics=EXPORTER)) as other, serving(Wire()) as silent:
        assert await count_energy(_info(one.address, other.address)) == EnergyCount(4000.5, 3, "metrics")
        assert await count_energy(_info(one.address, silent.address)) is None


async def test_no_gpu_has_no_energy() -> None:
    assert await count_energy(None) is None
    assert await count_energy(_info(device="cpu")) is None

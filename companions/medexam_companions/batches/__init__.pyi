from .engine import BatchEngine as BatchEngine
from .provider import HostedBatches as HostedBatches

"""vLLM's processes poll each other, which leaves two cores no time to compute: here they sleep between two looks."""

import os
import time

os.sched_yield = lambda: time.sleep(0.0005)

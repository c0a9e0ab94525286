"""A driver to be killed: runs an experiment on a cluster.

Usage: python driver.py SPEC RUNS_DIR HOST:PORT
"""

import json
import sys
from pathlib import Path

import slow_script

import ray
from medexam.experiments import Runner, plan_experiment
from medexam.experiments.run.ray.cluster import open_cluster
from medexam.experiments.run.ray.launcher import RayLauncher
from medexam.experiments.run.workers.executor import SpreadExecutor
from watching import Silent

if __name__ == "__main__":
    spec, runs_dir, address = sys.argv[1:]
    plan = plan_experiment(json.loads(Path(spec).read_text(encoding="utf-8")), {}, runs_dir=Path(runs_dir))
    ray.cloudpickle.register_pickle_by_value(slow_script)
    ray.init(address=address, log_to_driver=False, runtime_env={"worker_process_setup_hook": slow_script.answer_ten})
    with open_cluster(address) as cluster:
        Runner(plan, Silent(), executor=SpreadExecutor(RayLauncher(cluster, workers=2))).run()

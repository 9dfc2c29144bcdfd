"""A study by workers that are jobs of Slurm (`tests/slurm.sh`): python slurm.py SETS DIRECTORY."""

import os
import sys

from dask_jobqueue import SLURMCluster
from distributed import Client

import warmset as ws

if __name__ == "__main__":
    sets, directory = int(sys.argv[1]), sys.argv[2]
    with SLURMCluster(
        cores=1, processes=1, memory="500MB", walltime="00:10:00",
        scheduler_options={"host": "127.0.0.1", "dashboard": False},
        worker_extra_args=["--host", "127.0.0.1", "--no-dashboard"],
        log_directory=os.getcwd(), local_directory=os.getcwd(),
    ) as cluster:
        cluster.scale(jobs=2)
        with Client(cluster) as client:
            client.wait_for_workers(2, timeout=120)
            ws.Study("ospert10-fig5", sets=sets).run(directory, client=client)
            names = [worker["name"] for worker in client.scheduler_info()["workers"].values()]
    print("by the jobs", *sorted(str(name) for name in names))

"""Jobs a second that SimSo simulates, on the task sets of `cargo bench -p warmset-simulate`.

    python3 -m venv venv && venv/bin/pip install simso==0.8.5      # Python 3.11 or older
    venv/bin/python compare/simso_speed.py

Time is processor time of this process; every scheduler runs three times and the median counts.
"""

import contextlib
import io
import statistics
import time

from simso.configuration import Configuration
from simso.core import Model

MILLISECONDS = 2_000


def tasks(n, percent):
    """The set of crates/simulate/benches/speed.rs: (WCET, period) in milliseconds."""
    for i in range(n):
        period = 10 + (i * 37) % 91
        yield period * percent * (1 + i % 3) / (100 * 2 * n), period


def configuration(scheduler, m, n, percent):
    configuration = Configuration()
    configuration.duration = MILLISECONDS * configuration.cycles_per_ms
    configuration.etm = "wcet"
    for i, (wcet, period) in enumerate(tasks(n, percent)):
        configuration.add_task(
            name=f"t{i}", identifier=i, period=period, activation_date=0, wcet=wcet, deadline=period
        )
    for i in range(m):
        configuration.add_processor(name=f"cpu{i}", identifier=i)
    configuration.scheduler_info.clas = scheduler
    configuration.check_all()
    return configuration


def jobs_per_second(scheduler, m=4, n=20, percent=304):
    rates = []
    for _ in range(3):
        model = Model(configuration(scheduler, m, n, percent))
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its decisions
            begin = time.process_time()
            model.run_model()
            took = time.process_time() - begin
        ended = sum(
            1 for task in model.results.tasks.values() for job in task.jobs if job.end_date is not None
        )
        rates.append(ended / took)
    return statistics.median(rates)


if __name__ == "__main__":
    for name, scheduler in [
        ("G-EDF", "simso.schedulers.EDF"),
        ("P-EDF", "simso.schedulers.P_EDF_WF"),
        ("EKG", "simso.schedulers.EKG"),
        ("PD2", "simso.schedulers.PD2"),
    ]:
        print(f"{name:6} m=4 n=20 U=3.04  {jobs_per_second(scheduler):8.0f} jobs/s")

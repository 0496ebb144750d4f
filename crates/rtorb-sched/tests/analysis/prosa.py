"""Prints the bounds that the PyPI package response-time-analysis has for sets of tasks.

A line of the input is a set: `PERIOD JOBS GAP WORST DEADLINE NPS` for each task, the most urgent first, separated by semicolons.
JOBS arrive in a period, GAP apart; NPS is the longest part that cannot be preempted. A line of the output has the bounds under fixed
priorities and then those under earliest deadline first, in the order of the tasks; `-` for none.
"""

import sys

from response_time_analysis import edf, fp
from response_time_analysis.model import (
    WCET,
    ArrivalCurvePrefix,
    Deadline,
    FloatingNonPreemptive,
    IdealProcessor,
    Priority,
    Sporadic,
    Task,
    taskset,
)

HORIZON = 20_000


def arrivals(period, jobs, gap):
    if jobs == 1:
        return Sporadic(period)
    steps = [(job * gap + 1, job + 1) for job in range(jobs)] if gap else [(1, jobs)]
    return ArrivalCurvePrefix(horizon=period, ac_steps=steps)


def task(fields, urgency):
    period, jobs, gap, worst, deadline, nps = map(int, fields.split())
    return Task(
        arrivals(period, jobs, gap),
        FloatingNonPreemptive(WCET(worst), nps),
        Deadline(deadline),
        Priority(urgency),
    )


def bound(analysis, tasks, one):
    found = analysis.rta(tasks, one, IdealProcessor(), horizon=HORIZON)
    return str(found.response_time_bound) if found.bound_found() else "-"


for line in sys.stdin:
    fields = line.split(";")
    each = [task(fields[place], len(fields) - place) for place in range(len(fields))]
    tasks = taskset(*each)
    print(*(bound(analysis, tasks, one) for analysis in (fp, edf) for one in each))

"""Schedules: how many rounds a run has, and how much noise each of them gets; the table of their names."""

from nodes.schedules.budgets import Budgets
from nodes.schedules.discounting import Discounting
from nodes.schedules.fixed import Fixed

SCHEDULES: dict[str, type] = {"fixed": Fixed, "crd": Discounting, "budgets": Budgets}

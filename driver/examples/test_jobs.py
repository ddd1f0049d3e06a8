"""Tests of the queue of jobs.py: one that a simulated cluster fails, and one that it does not."""

import pytest
from jobs import db, pop, push, work, work_by_name


@pytest.mark.shaketable
def test_jobs():
    work(lambda job: push(db, job), lambda: pop(db))


@pytest.mark.shaketable
def test_jobs_by_name():
    work_by_name()

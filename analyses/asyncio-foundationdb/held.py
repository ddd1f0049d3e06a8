"""All checks of what holds, on one cluster."""

import blobs
import changes
import entities
import hooks
import queries
import search
import tuples
from store import run

run(*(module.check for module in (tuples, entities, blobs, search, changes, queries, hooks)))

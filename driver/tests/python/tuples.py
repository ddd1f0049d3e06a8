"""Recorded tuples, packed and unpacked by the binding."""

import struct
import uuid

import fdb
import fdb.tuple

from spelling import decode


def element(recorded):
    """The element of a tuple that a recording describes."""
    ((kind, value),) = recorded.items()
    if kind == "null":
        return None
    if kind in ("bool", "text"):
        return value
    if kind == "int":
        return int(value)
    if kind == "tuple":
        return tuple(map(element, value))
    data = decode(value)
    if kind == "bytes":
        return data
    if kind == "uuid":
        return uuid.UUID(bytes=data)
    if kind == "stamp":
        return fdb.tuple.Versionstamp.from_bytes(data)
    if kind == "f64":
        return struct.unpack(">d", data)[0]
    if kind == "f32":
        return fdb.tuple.SingleFloat(struct.unpack(">f", data)[0])
    raise ValueError("unknown: " + kind)


def replay(case):
    """Packs the tuple and unpacks its bytes. The unpacked tuple is compared as text: a NaN is not equal to itself."""
    elements, recorded = tuple(map(element, case["tuple"])), decode(case["packed"])
    packed = fdb.tuple.pack(elements)
    if packed != recorded:
        return "pack", elements, recorded, packed
    unpacked = fdb.tuple.unpack(recorded)
    if repr(unpacked) != repr(elements):
        return "unpack", recorded, elements, unpacked
    return None

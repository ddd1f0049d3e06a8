"""The locality functions of the binding, and special keys, on a calm simulated cluster with several shards."""

import json

import fdb

fdb.api_version(fdb.LATEST_API_VERSION)
db = fdb.open()


def expect(code, call):
    try:
        call()
    except fdb.FDBError as error:
        assert error.code == code, error
    else:
        raise AssertionError("no error, where %d was expected" % code)


def special(name):
    tr = db.create_transaction()
    return tr[b"\xff\xff/" + name].wait()


def locality():
    boundaries = list(fdb.locality.get_boundary_keys(db, b"", b"\xff"))
    assert boundaries[0] == b"" and boundaries == sorted(set(boundaries)), boundaries
    assert list(fdb.locality.get_boundary_keys(db, b"b", b"a")) == []
    status = json.loads(bytes(special(b"status/json")))
    assert len(boundaries) <= status["cluster"]["data"]["partitions_count"], boundaries
    storage = {
        process["address"]
        for process in status["cluster"]["processes"].values()
        if any(role["role"] == "storage" for role in process["roles"])
    }
    replicas = status["cluster"]["configuration"]["storage_replicas"]
    # The answer ends with its transaction.
    tr = db.create_transaction()
    for key in boundaries:
        addresses = {address.decode() for address in fdb.locality.get_addresses_for_key(tr, key).wait()}
        assert len(addresses) == replicas and addresses <= storage, (addresses, storage)


def cluster():
    connection = bytes(special(b"connection_string"))
    assert bytes(special(b"cluster_id")) == bytes(special(b"cluster_id")) and len(special(b"cluster_id")) == 32
    tr = db.create_transaction()
    tr.options.set_read_system_keys()
    assert bytes(tr[b"\xff/coordinators"].wait()) == connection
    expect(2113, lambda: special(b"globalConfig/"))
    assert json.loads(bytes(db.get_client_status().wait()))["Healthy"] is True


def lock():
    uid = b"0123456789abcdef0123456789abcdef"

    def write(value):
        tr = db.create_transaction()
        tr.options.set_special_key_space_enable_writes()
        if value is None:
            del tr[b"\xff\xff/management/db_locked"]
        else:
            tr[b"\xff\xff/management/db_locked"] = value
        tr.commit().wait()

    write(uid)
    refused = db.create_transaction()
    refused[b"key"] = b"value"
    expect(1038, lambda: refused.commit().wait())
    aware = db.create_transaction()
    aware.options.set_lock_aware()
    aware[b"key"] = b"aware"
    aware.commit().wait()
    assert bytes(special(b"management/db_locked")) == uid
    write(None)
    assert bytes(db[b"key"]) == b"aware"


locality()
cluster()
lock()
print("passed")

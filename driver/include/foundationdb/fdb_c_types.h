/* The handles and numbers of fdb_c.h, which includes this. */

#ifndef FDB_C_TYPES_H
#define FDB_C_TYPES_H

#ifndef DLLEXPORT
#define DLLEXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* 0 is success. */
typedef int fdb_error_t;

/* 0 is false. */
typedef int fdb_bool_t;

typedef struct FDB_database FDBDatabase;
typedef struct FDB_tenant FDBTenant;
typedef struct FDB_transaction FDBTransaction;
typedef struct FDB_future FDBFuture;
typedef struct FDB_result FDBResult;
#if FDB_API_VERSION >= 800
typedef struct FDB_cdc_consumer FDBCdcConsumer;
#endif
/* Of versions before 610. */
typedef struct FDB_cluster FDBCluster;

#ifdef __cplusplus
}
#endif

#endif

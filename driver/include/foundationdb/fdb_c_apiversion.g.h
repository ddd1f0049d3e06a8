/* The versions of the API that fdb_c.h declares, which includes this. */

#ifndef FDB_C_APIVERSION_G_H
#define FDB_C_APIVERSION_G_H

#define FDB_LATEST_API_VERSION 800
#define FDB_LATEST_BINDINGS_API_VERSION 800

/* The first versions with CLIENT_TMP_DIR and with DISABLE_CLIENT_BYPASS. */
#define FDB_API_VERSION_CLIENT_TMP_DIR 720
#define FDB_API_VERSION_DISABLE_CLIENT_BYPASS 720

#endif

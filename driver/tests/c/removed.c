// Calls a function that versions from 610 do not have.

#include <fdb_c.h>

int main(void) {
    fdb_cluster_destroy(0);
    return 0;
}

// A program that opens a database, asks nothing of it, and ends at once, as it is told.
//
// opens stop|exit|_exit

#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    FDBDatabase *db = start(NULL);
    if (argv[1][0] == '_') _exit(0);
    if (argv[1][0] == 's') stop(db);
    return 0;
}

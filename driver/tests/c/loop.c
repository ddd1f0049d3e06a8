// One thread with an event loop: callbacks on the network thread write to a pipe, the loop reads from it and continues
// what was waiting. Several transactions are in progress at a time, and the thread computes between its calls for as long
// as it pleases. As many threads as the argument says do nothing.

#include "check.h"

#include <poll.h>
#include <time.h>

enum { JOBS = 8, STEPS = 25 };

// A job reads a counter, adds to it and commits, again and again.
struct job {
    FDBTransaction *tr;
    FDBFuture *f;
    enum { READ, COMMIT, RETRY } state;
    int number, step;
};

static struct job jobs[JOBS];
static int ready[2], left = JOBS;
static unsigned draws;

// As long as a thread with other things to do may take: it differs from run to run.
static void compute(void) {
    struct timespec now;
    SAME(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    draws = draws * 1103515245u + 12345u + (unsigned)now.tv_nsec;
    for (volatile unsigned i = 0; i < (draws >> 16) % 100000; i++) {
    }
}

static void wake(FDBFuture *f, void *job) {
    (void)f;
    SAME(write(ready[1], &job, sizeof job), sizeof job);
}

static void await(struct job *job, FDBFuture *f, int state) {
    compute();
    job->f = f;
    job->state = state;
    SAME(fdb_future_set_callback(f, wake, job), 0);
}

static void read_counter(struct job *job) {
    char key[16];
    snprintf(key, sizeof key, "counter%d", job->number % 3);
    await(job, fdb_transaction_get(job->tr, KEY(key), 0), READ);
}

static void write_counter(struct job *job) {
    char key[16];
    fdb_bool_t present;
    const uint8_t *value;
    int length;
    int64_t count = 0;
    SAME(fdb_future_get_value(job->f, &present, &value, &length), 0);
    if (present) memcpy(&count, value, 8);
    count++;
    snprintf(key, sizeof key, "counter%d", job->number % 3);
    fdb_transaction_set(job->tr, KEY(key), (const uint8_t *)&count, 8);
    FDBFuture *read = job->f;
    await(job, fdb_transaction_commit(job->tr), COMMIT);
    fdb_future_destroy(read);
}

static void proceed(struct job *job) {
    compute();
    fdb_error_t error = fdb_future_get_error(job->f);
    FDBFuture *done = job->f;
    printf("job %d step %d state %d error %d\n", job->number, job->step, job->state, error);
    if (error) {
        if (job->state == RETRY) fdb_transaction_reset(job->tr);
        if (job->state == RETRY)
            read_counter(job);
        else
            await(job, fdb_transaction_on_error(job->tr, error), RETRY);
    } else if (job->state == READ) {
        write_counter(job);
        return;
    } else if (job->state == COMMIT && ++job->step == STEPS) {
        left--;
    } else {
        if (job->state == COMMIT) fdb_transaction_reset(job->tr);
        read_counter(job);
    }
    fdb_future_destroy(done);
}

static void *rest(void *unused) {
    for (;;) pause();
    return unused;
}

int main(int count, char **arguments) {
    pthread_attr_t small;
    SAME(pthread_attr_init(&small), 0);
    SAME(pthread_attr_setstacksize(&small, 65536), 0);
    for (int i = count > 1 ? atoi(arguments[1]) : 0; i > 0; i--) {
        pthread_t thread;
        SAME(pthread_create(&thread, &small, rest, NULL), 0);
    }
    FDBDatabase *db = start(NULL);
    SAME(pipe(ready), 0);
    for (int i = 0; i < JOBS; i++) {
        jobs[i].number = i;
        jobs[i].tr = begin(db);
        read_counter(&jobs[i]);
    }
    while (left) {
        struct pollfd fd = {ready[0], POLLIN, 0};
        // As many as are there: how many it finds must not matter, either.
        struct job *found[JOBS];
        if (poll(&fd, 1, -1) < 0) continue;
        ssize_t bytes = read(ready[0], found, sizeof found);
        for (size_t i = 0; i < bytes / sizeof found[0]; i++) proceed(found[i]);
    }
    for (int i = 0; i < JOBS; i++) fdb_transaction_destroy(jobs[i].tr);
    stop(db);
    return 0;
}

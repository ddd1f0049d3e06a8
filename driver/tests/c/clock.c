// What a program sees of the clock: it sleeps and waits with timeouts between its transactions, and prints the times. The
// argument names what it does. Without virtual time, it would take hours.

#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

enum { SECOND = 1000000000 };

static FDBDatabase *db;

static long long nanos(struct timespec time) { return time.tv_sec * 1000000000LL + time.tv_nsec; }

static struct timespec timespec_of(long long time) {
    return (struct timespec){time / SECOND, time % SECOND};
}

static long long now(clockid_t clock) {
    struct timespec time;
    SAME(clock_gettime(clock, &time), 0);
    return nanos(time);
}

// The time that the kernel knows.
static long long kernel(clockid_t clock) {
    struct timespec time;
    SAME(syscall(SYS_clock_gettime, clock, &time), 0);
    return nanos(time);
}

// Sleeps again and again, so that there is always a next time to which the clock could run.
static void *rest(void *unused) {
    for (;;) sleep(7);
    return unused;
}

static void begin_to_rest(void) {
    pthread_t thread;
    SAME(pthread_create(&thread, NULL, rest, NULL), 0);
    SAME(pthread_detach(thread), 0);
}

// Reads and writes, and prints when that was.
static void transact(void) {
    FDBTransaction *tr = begin(db);
    fdb_error_t error;
    do {
        FDBFuture *f = fdb_transaction_get(tr, KEY("key"), 0);
        error = finish(f);
        if (!error) {
            fdb_transaction_set(tr, KEY("key"), KEY("value"));
            error = finish(fdb_transaction_commit(tr));
        }
        printf("%d at %lld\n", error, now(CLOCK_MONOTONIC));
    } while (error && !finish(fdb_transaction_on_error(tr, error)));
    fdb_transaction_destroy(tr);
}

// Checks that exactly so much time has passed on every clock, and prints it.
static void passed(const char *what, long long since, long long expected) {
    long long took = now(CLOCK_MONOTONIC) - since;
    printf("%s: %lld\n", what, took);
    SAME(took, expected);
    SAME(now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC), (1767225600LL - 3600) * SECOND);
    SAME(now(CLOCK_BOOTTIME), now(CLOCK_MONOTONIC_RAW));
    SAME(time(NULL), now(CLOCK_REALTIME) / SECOND);
    struct timeval day;
    SAME(gettimeofday(&day, NULL), 0);
    SAME(day.tv_sec * 1000000LL + day.tv_usec, now(CLOCK_REALTIME) / 1000);
}

// Sleeps in every way.
static void sleeps(void) {
    long long start = now(CLOCK_MONOTONIC);
    sleep(3600);
    passed("sleep", start, 3600LL * SECOND);
    transact();
    start = now(CLOCK_MONOTONIC);
    SAME(usleep(250000), 0);
    passed("usleep", start, SECOND / 4);
    struct timespec time = {1, 7};
    start = now(CLOCK_MONOTONIC);
    SAME(nanosleep(&time, NULL), 0);
    passed("nanosleep", start, SECOND + 7);
    start = now(CLOCK_MONOTONIC);
    time = timespec_of(start + 123456789);
    SAME(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL), 0);
    passed("clock_nanosleep until", start, 123456789);
    SAME(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL), 0);
    passed("clock_nanosleep until the past", start, 123456789);
    time = timespec_of(90LL * SECOND);
    SAME(clock_nanosleep(CLOCK_REALTIME, 0, &time, NULL), 0);
    passed("clock_nanosleep", start, 123456789 + 90LL * SECOND);
    // Whoever only looks at the clock sees it advance.
    start = now(CLOCK_MONOTONIC);
    while (now(CLOCK_MONOTONIC) - start < SECOND / 50);
    passed("look", start, SECOND / 50);
    transact();
}

static int ends[2];

static void *fill(void *unused) {
    sleep(5);
    SAME(write(ends[1], "x", 1), 1);
    return unused;
}

// Waits for a file that has something after five seconds.
static void filled_meanwhile(int epoll) {
    for (int which = 0; which < 3; which++) {
        pthread_t filler;
        long long start = now(CLOCK_MONOTONIC);
        SAME(pthread_create(&filler, NULL, fill, NULL), 0);
        struct pollfd file = {ends[0], POLLIN, 0};
        struct epoll_event event;
        struct timeval timeout = {60, 0};
        fd_set read_set;
        FD_ZERO(&read_set);
        FD_SET(ends[0], &read_set);
        if (which == 0) SAME(poll(&file, 1, 60000), 1);
        if (which == 1) SAME(epoll_wait(epoll, &event, 1, 60000), 1);
        if (which == 2) SAME(select(ends[0] + 1, &read_set, NULL, NULL, &timeout), 1);
        passed("filled", start, 5LL * SECOND);
        char byte;
        SAME(read(ends[0], &byte, 1), 1);
        SAME(pthread_join(filler, NULL), 0);
    }
}

// Waits for files that have nothing, and for one that has.
static void files(void) {
    begin_to_rest();
    SAME(pipe(ends), 0);
    struct pollfd file = {ends[0], POLLIN, 0};
    struct timespec time = {30, 5};
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    SAME(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event), 0);
    filled_meanwhile(epoll);
    for (int full = 0; full < 2; full++) {
        transact();
        long long start = now(CLOCK_MONOTONIC), wait = full ? 0 : 60LL * SECOND;
        SAME(poll(&file, 1, 60000), full);
        passed("poll", start, wait);
        start = now(CLOCK_MONOTONIC);
        SAME(ppoll(&file, 1, &time, NULL), full);
        passed("ppoll", start, full ? 0 : 30LL * SECOND + 5);
        start = now(CLOCK_MONOTONIC);
        SAME(epoll_wait(epoll, &event, 1, 60000), full);
        passed("epoll_wait", start, wait);
        start = now(CLOCK_MONOTONIC);
        fd_set read;
        FD_ZERO(&read);
        FD_SET(ends[0], &read);
        struct timeval timeout = {60, 0};
        SAME(select(ends[0] + 1, &read, NULL, NULL, &timeout), full);
        passed("select", start, wait);
        SAME(timeout.tv_sec, full ? 60 : 0);
        SAME(FD_ISSET(ends[0], &read) != 0, full);
        start = now(CLOCK_MONOTONIC);
        FD_SET(ends[0], &read);
        SAME(pselect(ends[0] + 1, &read, NULL, NULL, &time, NULL), full);
        passed("pselect", start, full ? 0 : 30LL * SECOND + 5);
        SAME(write(ends[1], "x", 1), 1);
    }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int is_changed;

static void *hold(void *unused) {
    SAME(pthread_mutex_lock(&mutex), 0);
    sem_post(&semaphore);
    sleep(5);
    is_changed = 1;
    SAME(pthread_cond_signal(&changed), 0);
    SAME(pthread_mutex_unlock(&mutex), 0);
    return unused;
}

// Computes for longer than a waiting thread sleeps at once in real time.
static void *compute(void *unused) {
    long long start = kernel(CLOCK_MONOTONIC);
    while (kernel(CLOCK_MONOTONIC) - start < SECOND / 10 * 3LL);
    SAME(pthread_mutex_lock(&mutex), 0);
    is_changed = 2;
    SAME(pthread_cond_signal(&changed), 0);
    SAME(pthread_mutex_unlock(&mutex), 0);
    return unused;
}

// Waits for locks until a time that comes, and for one that is given before.
static void locks(void) {
    begin_to_rest();
    SAME(sem_init(&semaphore, 0, 0), 0);
    long long start = now(CLOCK_MONOTONIC);
    struct timespec until = timespec_of(now(CLOCK_REALTIME) + 100LL * SECOND);
    SAME(sem_timedwait(&semaphore, &until), -1);
    SAME(errno, ETIMEDOUT);
    passed("sem_timedwait", start, 100LL * SECOND);
    SAME(sem_timedwait(&semaphore, &until), -1);
    passed("sem_timedwait until the past", start, 100LL * SECOND);
    transact();
    start = now(CLOCK_MONOTONIC);
    until = timespec_of(start + 2LL * SECOND);
    SAME(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until), -1);
    passed("sem_clockwait", start, 2LL * SECOND);

    start = now(CLOCK_MONOTONIC);
    SAME(pthread_mutex_lock(&mutex), 0);
    until = timespec_of(now(CLOCK_REALTIME) + 100LL * SECOND);
    int error = 0;
    while (!error) error = pthread_cond_timedwait(&changed, &mutex, &until);
    SAME(error, ETIMEDOUT);
    passed("pthread_cond_timedwait", start, 100LL * SECOND);
    SAME(pthread_cond_timedwait(&changed, &mutex, &until), ETIMEDOUT);
    SAME(pthread_mutex_trylock(&mutex), EBUSY);
    passed("pthread_cond_timedwait until the past", start, 100LL * SECOND);
    pthread_condattr_t monotonic;
    pthread_cond_t other;
    SAME(pthread_condattr_init(&monotonic), 0);
    SAME(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC), 0);
    SAME(pthread_cond_init(&other, &monotonic), 0);
    start = now(CLOCK_MONOTONIC);
    until = timespec_of(start + 3LL * SECOND);
    for (error = 0; !error;) error = pthread_cond_timedwait(&other, &mutex, &until);
    SAME(error, ETIMEDOUT);
    passed("pthread_cond_timedwait of CLOCK_MONOTONIC", start, 3LL * SECOND);
    SAME(pthread_mutex_unlock(&mutex), 0);

    unsigned word = 0;
    start = now(CLOCK_MONOTONIC);
    until = timespec_of(start + 20LL * SECOND);
    while (!syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, -1));
    SAME(errno, ETIMEDOUT);
    passed("FUTEX_WAIT_BITSET", start, 20LL * SECOND);
    SAME(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, -1), -1);
    SAME(errno, ETIMEDOUT);
    do {
        until = timespec_of(start + 40LL * SECOND - now(CLOCK_MONOTONIC));
    } while (!syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &until, NULL, 0));
    SAME(errno, ETIMEDOUT);
    passed("FUTEX_WAIT", start, 40LL * SECOND);
    SAME(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &until, NULL, 0), -1);
    SAME(errno, EAGAIN);

    pthread_t holder;
    start = now(CLOCK_MONOTONIC);
    SAME(pthread_create(&holder, NULL, hold, NULL), 0);
    SAME(sem_wait(&semaphore), 0);
    until = timespec_of(now(CLOCK_REALTIME) + 2LL * SECOND);
    SAME(pthread_mutex_timedlock(&mutex, &until), ETIMEDOUT);
    passed("pthread_mutex_timedlock", start, 2LL * SECOND);
    until = timespec_of(now(CLOCK_REALTIME) + 100LL * SECOND);
    SAME(pthread_mutex_timedlock(&mutex, &until), 0);
    passed("pthread_mutex_timedlock that is given", start, 5LL * SECOND);
    SAME(pthread_mutex_unlock(&mutex), 0);
    SAME(pthread_join(holder, NULL), 0);

    is_changed = 0;
    start = now(CLOCK_MONOTONIC);
    SAME(pthread_create(&holder, NULL, hold, NULL), 0);
    SAME(sem_wait(&semaphore), 0);
    SAME(pthread_mutex_lock(&mutex), 0);
    until = timespec_of(start + 100LL * SECOND);
    while (!is_changed) SAME(pthread_cond_clockwait(&changed, &mutex, CLOCK_MONOTONIC, &until), 0);
    SAME(pthread_mutex_unlock(&mutex), 0);
    passed("pthread_cond_clockwait that is signalled", start, 5LL * SECOND);
    SAME(pthread_join(holder, NULL), 0);
    start = now(CLOCK_MONOTONIC);
    SAME(pthread_create(&holder, NULL, compute, NULL), 0);
    SAME(pthread_mutex_lock(&mutex), 0);
    while (is_changed != 2) SAME(pthread_cond_clockwait(&changed, &mutex, CLOCK_MONOTONIC, &until), 0);
    SAME(pthread_mutex_unlock(&mutex), 0);
    passed("pthread_cond_clockwait while another thread computes", start, 0);
    SAME(pthread_join(holder, NULL), 0);
    transact();
}

static void *sleep_and_transact(void *number) {
    for (int i = 0; i < 5; i++) {
        // Who is first differs from run to run.
        for (volatile long long left = kernel(CLOCK_MONOTONIC) % 1000000; left > 0; left--);
        usleep(1000 * (1 + (size_t)number % 2));
        printf("thread %d\n", (int)(size_t)number);
        transact();
    }
    return NULL;
}

// Several threads that sleep.
static void threads(void) {
    pthread_t all[4];
    for (size_t i = 0; i < 4; i++) SAME(pthread_create(&all[i], NULL, sleep_and_transact, (void *)i), 0);
    for (int i = 0; i < 4; i++) SAME(pthread_join(all[i], NULL), 0);
}

// What the C library's functions do without virtual time.
static void real(void) {
    long long start = now(CLOCK_MONOTONIC), of_kernel = kernel(CLOCK_MONOTONIC);
    SAME(usleep(20000), 0);
    CHECK(now(CLOCK_MONOTONIC) - start >= 20000000 && kernel(CLOCK_MONOTONIC) - of_kernel >= 20000000);
    CHECK(of_kernel >= start && of_kernel - start < SECOND);
    CHECK(llabs(kernel(CLOCK_REALTIME) - now(CLOCK_REALTIME)) < SECOND);
    struct timespec until = timespec_of(now(CLOCK_REALTIME) + SECOND / 50);
    SAME(sem_init(&semaphore, 0, 0), 0);
    SAME(sem_timedwait(&semaphore, &until), -1);
    CHECK(now(CLOCK_MONOTONIC) - start >= SECOND / 25);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    int is_real = !strcmp(what, "real");
    // Before the cluster runs, a sleep is real.
    long long since = now(CLOCK_MONOTONIC);
    SAME(usleep(1000), 0);
    if (!is_real) {
        SAME(since, 3600LL * SECOND);
        passed("before the cluster", since, 1000000);
    }
    db = start(NULL);
    if (!is_real) transact();
    if (!strcmp(what, "sleeps")) sleeps();
    if (!strcmp(what, "files")) files();
    if (!strcmp(what, "locks")) locks();
    if (!strcmp(what, "threads")) threads();
    if (is_real) real();
    stop(db);
    since = now(CLOCK_MONOTONIC);
    SAME(usleep(1000), 0);
    if (!is_real) passed("after the cluster", since, 1000000);
    return 0;
}

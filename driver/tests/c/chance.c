// Random numbers in every way, of threads and processes, and threads that wait for one another. Prints what it draws and
// in which order threads have a lock.

#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <semaphore.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { THREADS = 4, TURNS = 5 };

static FDBDatabase *db;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static unsigned drawn[THREADS];
static int order[THREADS * TURNS * 3], count;

static unsigned by_descriptor(const char *path) {
    unsigned number = 0;
    int file = open(path, O_RDONLY);
    SAME(read(file, &number, sizeof number), sizeof number);
    SAME(close(file), 0);
    return number;
}

static unsigned by_stream(const char *path) {
    unsigned number = 0;
    FILE *file = fopen(path, "r");
    SAME(fread(&number, sizeof number, 1, file), 1);
    number ^= (unsigned)fgetc(file);
    SAME(fclose(file), 0);
    return number;
}

static unsigned draw(void) {
    unsigned number = 0;
    SAME(getrandom(&number, sizeof number, 0), sizeof number);
    return number;
}

static void draw_in_every_way(void) {
    unsigned number = 0;
    printf("getrandom %08x\n", draw());
    SAME(getentropy(&number, sizeof number), 0);
    printf("getentropy %08x\n", number);
    char long_one[300];
    SAME(getentropy(long_one, sizeof long_one), -1);
    SAME(syscall(SYS_getrandom, &number, sizeof number, 0), sizeof number);
    printf("system call %08x\n", number);
    printf("devices %08x %08x\n", by_descriptor("/dev/urandom"), by_descriptor("/dev/random"));
    printf("streams %08x %08x\n", by_stream("/dev/urandom"), by_stream("/dev/random"));
    // Other files are what they are.
    FILE *file = fopen("/dev/zero", "r");
    SAME(fgetc(file), 0);
    SAME(fclose(file), 0);
    SAME(by_descriptor("/dev/zero"), 0);
}

static void *draw_late(void *number) {
    // Which thread draws first differs from run to run.
    for (volatile unsigned left = by_descriptor("/proc/sys/kernel/random/uuid") % 100000; left > 0; left--);
    drawn[(size_t)number] = draw();
    return NULL;
}

static void draw_in_processes(void) {
    int ends[2];
    SAME(pipe(ends), 0);
    for (int i = 0; i < 2; i++) {
        unsigned number = 0;
        pid_t child = fork();
        if (child == 0) {
            number = draw();
            _exit(write(ends[1], &number, sizeof number) != sizeof number);
        }
        SAME(waitpid(child, NULL, 0), child);
        SAME(read(ends[0], &number, sizeof number), sizeof number);
        printf("child %08x\n", number);
    }
    printf("parent %08x\n", draw());
}

static void note(int thread) { order[count++] = thread; }

// Takes a mutex, a semaphore and a condition, each for a while in which others wait.
static void *contend(void *number) {
    int thread = (int)(size_t)number;
    for (int turn = 0; turn < TURNS; turn++) {
        FDBTransaction *tr = begin(db);
        SAME(pthread_mutex_lock(&mutex), 0);
        note(thread);
        finish(fdb_transaction_get(tr, KEY("key"), 0));
        SAME(pthread_cond_signal(&changed), 0);
        SAME(pthread_mutex_unlock(&mutex), 0);
        // Again at once: who waits may have it before.
        SAME(pthread_mutex_lock(&mutex), 0);
        note(thread);
        if (turn + 1 < TURNS && thread % 2) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += 1;
            pthread_cond_timedwait(&changed, &mutex, &until);
        }
        SAME(pthread_mutex_unlock(&mutex), 0);
        SAME(sem_wait(&semaphore), 0);
        note(thread);
        finish(fdb_transaction_get(tr, KEY("key"), 0));
        SAME(sem_post(&semaphore), 0);
        fdb_transaction_destroy(tr);
    }
    return NULL;
}

static void start_threads(void *(*function)(void *)) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) SAME(pthread_create(&threads[i], NULL, function, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++) SAME(pthread_join(threads[i], NULL), 0);
}

int main(int arguments, char **argument) {
    draw_in_every_way();
    start_threads(draw_late);
    for (int i = 0; i < THREADS; i++) printf("thread %08x\n", drawn[i]);
    draw_in_processes();
    if (arguments > 1 && !strcmp(argument[1], "threads")) {
        SAME(sem_init(&semaphore, 0, 1), 0);
        db = start(NULL);
        start_threads(contend);
        stop(db);
        for (int i = 0; i < count; i++) printf("%d", order[i]);
        printf("\n");
    }
    return 0;
}

/* Preloaded into `postgres`: flushes are acknowledged and not done.
   - Of files below the folder that PGDYNO_TEST_UNFLUSHED names: one flush in PGDYNO_TEST_ONE_IN, counted over all
     processes of the server. Nothing else hands their pages to the disk.
   - Of one segment of WAL in PGDYNO_TEST_ONE_SEGMENT_IN, by its number: every flush. Its pages go to the disk, which is
     not asked to keep them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Flushes until now. Backends inherit the mapping from the postmaster. */
static unsigned long *flushes;
static unsigned long one_in = 1;
static unsigned long one_segment_in;

__attribute__((constructor)) static void share_the_count(void) {
    const char *asked = getenv("PGDYNO_TEST_ONE_IN");
    if (asked != NULL)
        one_in = strtoul(asked, NULL, 10);
    asked = getenv("PGDYNO_TEST_ONE_SEGMENT_IN");
    if (asked != NULL)
        one_segment_in = strtoul(asked, NULL, 10);
    flushes = mmap(NULL, sizeof *flushes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (flushes == MAP_FAILED || one_in == 0)
        abort();
}

/* The path of an open file; empty if it has none. */
static void path_of(int fd, char path[4096]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, 4095);
    path[length < 0 ? 0 : length] = 0;
}

static int is_below(int fd) {
    char path[4096];
    const char *folder = getenv("PGDYNO_TEST_UNFLUSHED");
    path_of(fd, path);
    return folder != NULL && strstr(path, folder) != NULL;
}

static int hand_pages_to_the_disk(int fd, off64_t offset, off64_t length, unsigned flags) {
    static int (*real)(int, off64_t, off64_t, unsigned);
    if (!real)
        real = dlsym(RTLD_NEXT, "sync_file_range");
    return real(fd, offset, length, flags);
}

static int is_unkept_segment(int fd) {
    char path[4096];
    path_of(fd, path);
    const char *name = strstr(path, "/pg_wal/");
    if (one_segment_in == 0 || name == NULL || strspn(name += 8, "0123456789ABCDEF") != 24 || name[24] != 0)
        return 0;
    /* The last eight digits count the segments of 1 MB in 4 GB. */
    return strtoul(name + 16, NULL, 16) % one_segment_in == 0;
}

static int is_unflushed(int fd) {
    if (is_unkept_segment(fd)) {
        enum { ALL = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER };
        return hand_pages_to_the_disk(fd, 0, 0, ALL) == 0;
    }
    return is_below(fd) && __atomic_add_fetch(flushes, 1, __ATOMIC_RELAXED) % one_in == 0;
}

int fsync(int fd) {
    static int (*real)(int);
    if (is_unflushed(fd))
        return 0;
    if (!real)
        real = dlsym(RTLD_NEXT, "fsync");
    return real(fd);
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (is_unflushed(fd))
        return 0;
    if (!real)
        real = dlsym(RTLD_NEXT, "fdatasync");
    return real(fd);
}

/* Only a hint, but it would hand pages to the disk. */
int sync_file_range(int fd, off64_t offset, off64_t length, unsigned flags) {
    return is_below(fd) ? 0 : hand_pages_to_the_disk(fd, offset, length, flags);
}

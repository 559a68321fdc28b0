/* Preloaded into `postgres`: flushes of files below the folder that PGDYNO_TEST_UNFLUSHED names are acknowledged and not done. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_unflushed(int fd) {
    char link[64], path[4096];
    const char *folder = getenv("PGDYNO_TEST_UNFLUSHED");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || folder == NULL)
        return 0;
    path[length] = 0;
    return strstr(path, folder) != NULL;
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
    static int (*real)(int, off64_t, off64_t, unsigned);
    if (is_unflushed(fd))
        return 0;
    if (!real)
        real = dlsym(RTLD_NEXT, "sync_file_range");
    return real(fd, offset, length, flags);
}

/* Makes the n-th call on a file below one folder fail, or kills the process there. See faults.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READS = 1, WRITES = 2 };

static char folder[PATH_MAX];
static size_t length; /* of the folder's name; 0: not armed */
static long asked, left;
static int code, sticky, kinds;
static char fired[PATH_MAX + 64];

/* `error` below zero kills. With `from_then_on` all further calls of these kinds fail too. */
void faults_arm(const char *below, long n, int error, int from_then_on, int of_kinds) {
  length = 0;
  fired[0] = 0;
  asked = left = n;
  code = error;
  sticky = from_then_on;
  kinds = of_kinds;
  snprintf(folder, sizeof folder, "%s", below);
  length = strlen(folder);
}

void faults_disarm(void) { length = 0; }
const char *faults_fired(void) { return fired; }
long faults_calls(void) { return asked - left; }

static int fails(const char *name, const char *path, int kind) {
  if (!length || !(kind & kinds) || strncmp(path, folder, length)) return 0;
  long now = __atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST);
  if (now > 0 || (now < 0 && !sticky)) return 0;
  if (now == 0) snprintf(fired, sizeof fired, "%s %s", name, path + length);
  if (code < 0) syscall(SYS_kill, getpid(), SIGKILL);
  errno = code;
  return 1;
}

static int fails_fd(const char *name, int fd, int kind) {
  char link[64], path[PATH_MAX];
  if (!length || fd < 3) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = syscall(SYS_readlink, link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return fails(name, path, kind);
}

#define REAL(name) ((__typeof__(&name))real(#name, &found_##name))
static void *real(const char *name, void **kept) {
  if (!*kept) *kept = dlsym(RTLD_NEXT, name);
  return *kept;
}

#define ON_FD(type, name, kind, parameters, ...)        \
  static void *found_##name;                            \
  type name parameters {                                \
    if (fails_fd(#name, fd, kind)) return -1;           \
    return REAL(name)(__VA_ARGS__);                     \
  }
#define ON_PATH(name, kind, parameters, path, ...)      \
  static void *found_##name;                            \
  int name parameters {                                 \
    if (fails(#name, path, kind)) return -1;            \
    return REAL(name)(__VA_ARGS__);                     \
  }

ON_FD(ssize_t, read, READS, (int fd, void *b, size_t n), fd, b, n)
ON_FD(ssize_t, pread, READS, (int fd, void *b, size_t n, off_t o), fd, b, n, o)
ON_FD(ssize_t, pread64, READS, (int fd, void *b, size_t n, off64_t o), fd, b, n, o)
ON_FD(ssize_t, write, WRITES, (int fd, const void *b, size_t n), fd, b, n)
ON_FD(ssize_t, pwrite, WRITES, (int fd, const void *b, size_t n, off_t o), fd, b, n, o)
ON_FD(ssize_t, pwrite64, WRITES, (int fd, const void *b, size_t n, off64_t o), fd, b, n, o)
ON_FD(ssize_t, writev, WRITES, (int fd, const struct iovec *v, int n), fd, v, n)
ON_FD(int, fsync, WRITES, (int fd), fd)
ON_FD(int, fdatasync, WRITES, (int fd), fd)
ON_FD(int, ftruncate, WRITES, (int fd, off_t n), fd, n)
ON_FD(int, ftruncate64, WRITES, (int fd, off64_t n), fd, n)
ON_PATH(unlink, WRITES, (const char *p), p, p)
ON_PATH(unlinkat, WRITES, (int d, const char *p, int f), p, d, p, f)
ON_PATH(rename, WRITES, (const char *p, const char *q), p, p, q)
ON_PATH(renameat, WRITES, (int d, const char *p, int e, const char *q), p, d, p, e, q)
ON_PATH(link, WRITES, (const char *p, const char *q), p, p, q)
ON_PATH(linkat, WRITES, (int d, const char *p, int e, const char *q, int f), p, d, p, e, q, f)

static void *found_close;
int close(int fd) { /* it is closed all the same */
  int failed = fails_fd("close", fd, WRITES), kept = errno, result = REAL(close)(fd);
  if (failed) errno = kept;
  return failed ? -1 : result;
}

#define OPEN(name)                                                              \
  static void *found_##name;                                                    \
  int name(const char *path, int flags, ...) {                                  \
    va_list rest;                                                               \
    va_start(rest, flags);                                                      \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;     \
    va_end(rest);                                                               \
    if (fails(#name, path, flags & O_CREAT ? WRITES : READS)) return -1;        \
    return REAL(name)(path, flags, mode);                                       \
  }
#define OPENAT(name)                                                            \
  static void *found_##name;                                                    \
  int name(int dir, const char *path, int flags, ...) {                         \
    va_list rest;                                                               \
    va_start(rest, flags);                                                      \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;     \
    va_end(rest);                                                               \
    if (fails(#name, path, flags & O_CREAT ? WRITES : READS)) return -1;        \
    return REAL(name)(dir, path, flags, mode);                                  \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

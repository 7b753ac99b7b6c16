#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { MOST_HANDED = 32 };

int clinux_protect_memory(void) {
  // Attack: whoever makes the program crash reads codes, tokens and keys in a core file, in a crash report, or as another process of
  // the same user.
  struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return errno;
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  // The Swift runtime sets handlers for these before main, which print registers and the memory they point to, and hold the crashed
  // process for many seconds. Without them the kernel ends it at once.
  static const int fatal[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
  struct sigaction standard = {.sa_handler = SIG_DFL};
  sigemptyset(&standard.sa_mask);
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
    if (sigaction(fatal[i], &standard, NULL) != 0) return errno;
  }
  return 0;
}

int clinux_is_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0); }

ssize_t clinux_access_list(int descriptor, void *bytes, size_t size) {
  ssize_t length = fgetxattr(descriptor, "system.posix_acl_access", bytes, size);
  if (length < 0 && (errno == ENODATA || errno == ENOTSUP)) return 0;
  return length;
}

// Between fork and exec only what is async-signal-safe: another thread may have held any lock.
static void become_successor(
  const char *path, char *const arguments[], char *const environment[], const int *handed, int count, int errors, int report) {
  // What the gateway ignores or blocks would stay so in the program.
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  int moved[MOST_HANDED];
  // Out of the way first: each of them may stand where another one goes.
  int isFine = (report = fcntl(report, F_DUPFD_CLOEXEC, 100)) >= 0 && (errors = fcntl(errors, F_DUPFD_CLOEXEC, 100)) >= 0;
  for (int i = 0; i < count && isFine; i++) isFine = (moved[i] = fcntl(handed[i], F_DUPFD_CLOEXEC, 100)) >= 0;
  for (int i = 0; i < count && isFine; i++) isFine = dup2(moved[i], 3 + i) >= 0;
  isFine = isFine && dup2(errors, 2) >= 0 && (report = dup3(report, 3 + count, O_CLOEXEC)) >= 0;
  if (isFine) {
    // Attack: the program holds connections of clients, and files, that this process believes to be closed.
    if (syscall(SYS_close_range, 4 + count, ~0U, 0) != 0) {
      for (int descriptor = 4 + count; descriptor < 65536; descriptor++) close(descriptor);
    }
    execve(path, arguments, environment);
  }
  int code = errno;
  ssize_t written = write(report, &code, sizeof code);
  (void)written;
  _exit(127);
}

int clinux_start_successor(
  const char *path, char *const arguments[], char *const environment[], const int *handed, int count, int errors, pid_t *pid) {
  int report[2];
  if (count > MOST_HANDED) return EINVAL;
  if (pipe2(report, O_CLOEXEC) != 0) return errno;
  // The gateway's own handlers must not run in the copy.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t child = fork();
  if (child == 0) become_successor(path, arguments, environment, handed, count, errors, report[1]);
  int code = child < 0 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(report[1]);
  if (code == 0) {
    int failed = 0;
    ssize_t got;
    do got = read(report[0], &failed, sizeof failed);
    while (got < 0 && errno == EINTR);
    if (got == sizeof failed) {
      code = failed ? failed : EINVAL;
      while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    }
  }
  close(report[0]);
  if (code == 0) *pid = child;
  return code;
}

int clinux_peer(int descriptor, pid_t *pid, uid_t *user) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || length != sizeof peer) return -1;
  *pid = peer.pid;
  *user = peer.uid;
  return 0;
}

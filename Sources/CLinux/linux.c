#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

int clinux_protect_memory(void) {
  // Attack: after a crash, an attacker reads codes, tokens and keys from a core file or a crash report, or from another
  // process of the same user.
  struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return errno;
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  // The Swift runtime installs handlers for these signals before main. They print registers and memory, and delay the
  // exit by many seconds. Without them, the kernel ends the process at once.
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

int clinux_peer(int descriptor, pid_t *pid, uid_t *user) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || length != sizeof peer) return -1;
  *pid = peer.pid;
  *user = peer.uid;
  return 0;
}

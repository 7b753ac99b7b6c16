// Linux calls that Swift cannot make: variadic functions, and functions whose headers its Glibc module omits.
#pragma once
#include <stddef.h>
#include <sys/types.h>

// Protects the memory of this process: no core file, no tracing and no /proc/PID/mem for other processes of the same
// user, and no crash handler that prints memory. A child process keeps only the core limit after exec.
// Returns 0, or the errno of the failed call.
int clinux_protect_memory(void);

// Whether this process can be dumped and traced (PR_GET_DUMPABLE).
int clinux_is_dumpable(void);

// Reads the ACL of an open file in the kernel's format (system.posix_acl_access).
// Returns its length, 0 if the file has none, or -1 if it does not fit or cannot be read.
ssize_t clinux_access_list(int descriptor, void *bytes, size_t size);

// The process that created a pair of connected sockets, or the peer of a socket (SO_PEERCRED).
// Returns 0, or -1 if the descriptor is not such a socket.
int clinux_peer(int descriptor, pid_t *pid, uid_t *user);

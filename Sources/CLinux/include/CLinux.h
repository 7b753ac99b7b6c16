// Linux calls that Swift cannot make: variadic ones, and those whose headers its Glibc module leaves out.
#pragma once
#include <stddef.h>
#include <sys/types.h>

// Keeps this process's memory to itself: no core file, no tracing and no /proc/PID/mem for other processes of the same
// user, and no signal handler that looks through the memory after a crash. Children lose what belongs to the process
// when they execute another program, but keep the limit.
// Returns 0, or the errno of the call that failed.
int clinux_protect_memory(void);

// Whether this process may be dumped and traced (PR_GET_DUMPABLE).
int clinux_is_dumpable(void);

// The access list of an open file as the kernel stores it (system.posix_acl_access).
// Returns its length, 0 where the file has none, -1 where it does not fit or cannot be read.
ssize_t clinux_access_list(int descriptor, void *bytes, size_t size);

// Who made a pair of connected sockets, or is at the other end of one (SO_PEERCRED).
// Returns 0, or -1 where the descriptor is no such socket.
int clinux_peer(int descriptor, pid_t *pid, uid_t *user);

// Starts a program that inherits only three pipes from this process and does not outlive it. Swift cannot fork, and
// posix_spawn cannot set a parent-death signal.
#pragma once
#include <sys/types.h>

// A running program. The descriptors are this process's ends, close-on-exec and non-blocking.
typedef struct cspawn_child {
  pid_t pid;
  // Readable when the program has exited; -1 if the kernel does not support it.
  int ended;
  int input, output, errors;
} cspawn_child;

// More than five parameters: those of execve, the folder, and the two results.
// Starts a program in a new process group, with the given folder and exactly the given environment.
//
// The calling thread is the parent: when that thread ends for any reason, the kernel kills the program. Returns 0, or
// the errno of the failed step, whose name is then in `step`.
int cspawn_start(const char *path, char *const arguments[], char *const environment[], const char *folder,
  cspawn_child *child, const char **step);

// Sends a signal to the process group of the program. Do not call after cspawn_reap.
void cspawn_signal(const cspawn_child *child, int signal);

// Whether the program has exited. Does not reap it.
int cspawn_has_ended(const cspawn_child *child);

// Kills the rest of the process group and reaps the program. Call only after it has exited.
// Returns the status of waitpid.
int cspawn_reap(cspawn_child *child);

// Creates a descriptor that other threads can use to wake a poll; -1 on failure.
int cspawn_wake_make(void);
void cspawn_wake(int descriptor);
void cspawn_wake_clear(int descriptor);

// Blocks SIGPIPE for the calling thread, so that writing to a closed pipe does not end the process.
void cspawn_ignore_broken_pipes(void);

// More than five parameters: those of execve, the inherited descriptors, and the result.
// Starts a program that replaces this process. It inherits standard input and output and the given descriptors from 3
// on, and outlives this process.
// - handed: the descriptors that become 3, 4 and so on.
// - errors: the descriptor that becomes standard error.
// Returns 0, or the errno of the failure.
int cspawn_start_successor(const char *path, char *const arguments[], char *const environment[], const int *handed,
  int count, int errors, pid_t *pid);

// Starts a program so that nothing of the gateway but three pipes reaches it, and nothing of it outlives the gateway.
// Swift cannot fork, and posix_spawn sets no parent-death signal.
#pragma once
#include <sys/types.h>

// A program that runs. Descriptors are the gateway's ends, close-on-exec and non-blocking.
typedef struct cspawn_child {
  pid_t pid;
  // Readable when the program has ended; -1 where the kernel has none.
  int ended;
  int input, output, errors;
} cspawn_child;

// Starts a program in a process group of its own, in a folder, with this environment and no other.
//
// The calling thread is its parent: when that thread ends, however it ends, the kernel kills the program.
// Returns 0, or the errno of the step that failed, whose name is then in `step`.
int cspawn_start(const char *path, char *const arguments[], char *const environment[], const char *folder,
  cspawn_child *child, const char **step);

// Sends a signal to the program and all that it started. Must not be called after cspawn_reap.
void cspawn_signal(const cspawn_child *child, int signal);

// Whether the program has ended; leaves it to be reaped.
int cspawn_has_ended(const cspawn_child *child);

// Kills what is left of its group, then takes the program's end from the kernel. Only after it has ended.
// Returns the status as waitpid gives it.
int cspawn_reap(cspawn_child *child);

// A descriptor that another thread can wake a poll by; -1 where there is none.
int cspawn_wake_make(void);
void cspawn_wake(int descriptor);
void cspawn_wake_clear(int descriptor);

// Keeps a pipe that nobody reads from ending the process: for the calling thread.
void cspawn_ignore_broken_pipes(void);

// Starts a program that takes over from this process, with this process's standard input and output, and descriptors of
// this process from 3 on. It gets no other descriptor, and outlives this process.
// - handed: those that become 3, 4 and so on.
// - errors: what becomes its standard error.
// Returns 0, or the errno of what failed.
int cspawn_start_successor(
  const char *path, char *const arguments[], char *const environment[], const int *handed, int count, int errors,
    pid_t *pid);

#define _GNU_SOURCE
#include "CSpawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { MOST_HANDED = 32 };

enum { STEP_DESCRIPTORS, STEP_FOLDER, STEP_PROGRAM };
static const char *const step_names[] = {"descriptors", "folder", "program"};

struct failure {
  int step, code;
};

// Only async-signal-safe functions may be called between fork and exec, because another thread may hold any lock.
static void fail(int report, int step) {
  struct failure failure = {step, errno};
  ssize_t written = write(report, &failure, sizeof failure);
  (void)written;
  _exit(127);
}

static void close_from(int first) {
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  struct rlimit limit;
  int last = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
  for (int descriptor = first; descriptor < last; descriptor++) close(descriptor);
}

// Resets signals, because ignored (SIGPIPE) and blocked signals are inherited.
static void reset_signals(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

// Forks with all signals blocked, so that this process's handlers do not run in the child.
static pid_t fork_without_handlers(void) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = fork();
  if (pid != 0) pthread_sigmask(SIG_SETMASK, &before, NULL);
  return pid;
}

// Waits until the program runs. Reaps it and returns the error if exec failed; returns 0 on success.
static int await_start(int report, pid_t pid, int *step) {
  struct failure failure;
  ssize_t got;
  do got = read(report, &failure, sizeof failure);
  while (got < 0 && errno == EINTR);
  if (got != sizeof failure) return 0;
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
  *step = failure.step;
  return failure.code ? failure.code : EINVAL;
}

// The child's ends of the pipes: standard input, output and error, and the pipe on which it reports a failed step.
struct child_pipes {
  int input, output, errors, report;
};

// More than five parameters: those of execve, and what the child needs before it.
// Turns the child into the program. Does not return.
static void become(const char *path, char *const arguments[], char *const environment[], const char *folder,
  struct child_pipes pipes, pid_t parent) {
  reset_signals();
  setpgid(0, 0);
  // Attack: after the parent is killed, the program still holds secrets and acts on them.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  // Attack: a compromised program gains privileges by a setuid file.
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // Attack: a crash writes secrets to a core file.
  struct rlimit limit = {0, 0};
  setrlimit(RLIMIT_CORE, &limit);
  // The parent may have raised its limit for connections. A program that closes all possible descriptors one by one
  // would take minutes.
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 1024) {
    limit.rlim_cur = 1024;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  umask(077);
  // Move these descriptors out of the way: they may be 0, 1 or 2 if the parent was started with those closed.
  int report = fcntl(pipes.report, F_DUPFD_CLOEXEC, 10);
  int input = fcntl(pipes.input, F_DUPFD_CLOEXEC, 10);
  int output = fcntl(pipes.output, F_DUPFD_CLOEXEC, 10);
  int errors = fcntl(pipes.errors, F_DUPFD_CLOEXEC, 10);
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0 || dup3(report, 3, O_CLOEXEC) < 0) fail(report,
    STEP_DESCRIPTORS);
  close_from(4);
  if (chdir(folder) != 0) fail(3, STEP_FOLDER);
  execve(path, arguments, environment);
  fail(3, STEP_PROGRAM);
}

static void close_both(int pair[2]) {
  if (pair[0] >= 0) close(pair[0]);
  if (pair[1] >= 0) close(pair[1]);
}

// More than five parameters: see CSpawn.h.
int cspawn_start(const char *path, char *const arguments[], char *const environment[], const char *folder,
  cspawn_child *child, const char **step) {
  int input[2] = {-1, -1}, output[2] = {-1, -1}, errors[2] = {-1, -1}, report[2] = {-1, -1};
  *step = step_names[STEP_DESCRIPTORS];
  int code = 0;
  if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC) || pipe2(errors, O_CLOEXEC) ||
    pipe2(report, O_CLOEXEC)) code = errno;
  pid_t parent = getpid(), pid = -1;
  if (code == 0) {
    pid = fork_without_handlers();
    struct child_pipes pipes = {input[0], output[1], errors[1], report[1]};
    if (pid == 0) become(path, arguments, environment, folder, pipes, parent);
    if (pid < 0) code = errno;
  }
  if (code == 0) {
    close(report[1]);
    report[1] = -1;
    int failed = STEP_DESCRIPTORS;
    code = await_start(report[0], pid, &failed);
    *step = step_names[failed];
  }
  close_both(report);
  if (code != 0) {
    close_both(input);
    close_both(output);
    close_both(errors);
    return code;
  }
  close(input[0]);
  close(output[1]);
  close(errors[1]);
  *child = (cspawn_child){
    .pid = pid, .ended = (int)syscall(SYS_pidfd_open, pid, 0),
    .input = input[1], .output = output[0], .errors = errors[0],
  };
  int ours[] = {child->input, child->output, child->errors};
  for (int i = 0; i < 3; i++) fcntl(ours[i], F_SETFL, fcntl(ours[i], F_GETFL) | O_NONBLOCK);
  return 0;
}

// More than five parameters: those of execve, and the descriptors that the program inherits.
// Turns the child into the program that replaces this process. Does not return.
static void become_successor(const char *path, char *const arguments[], char *const environment[], const int *handed,
  int count, int errors, int report) {
  reset_signals();
  int moved[MOST_HANDED];
  // Move these descriptors out of the way: each may have the number that another one gets.
  report = fcntl(report, F_DUPFD_CLOEXEC, 100);
  int isFine = report >= 0 && (errors = fcntl(errors, F_DUPFD_CLOEXEC, 100)) >= 0;
  for (int i = 0; i < count && isFine; i++) isFine = (moved[i] = fcntl(handed[i], F_DUPFD_CLOEXEC, 100)) >= 0;
  for (int i = 0; i < count && isFine; i++) isFine = dup2(moved[i], 3 + i) >= 0;
  if (!isFine || dup2(errors, 2) < 0 || dup3(report, 3 + count, O_CLOEXEC) < 0) fail(report, STEP_DESCRIPTORS);
  // Attack: the program inherits client connections and files that this process considers closed.
  close_from(4 + count);
  execve(path, arguments, environment);
  fail(3 + count, STEP_PROGRAM);
}

// More than five parameters: see CSpawn.h.
int cspawn_start_successor(const char *path, char *const arguments[], char *const environment[], const int *handed,
  int count, int errors, pid_t *pid) {
  int report[2], step;
  if (count > MOST_HANDED) return EINVAL;
  if (pipe2(report, O_CLOEXEC) != 0) return errno;
  pid_t child = fork_without_handlers();
  if (child == 0) become_successor(path, arguments, environment, handed, count, errors, report[1]);
  int code = child < 0 ? errno : 0;
  close(report[1]);
  if (code == 0) code = await_start(report[0], child, &step);
  close(report[0]);
  if (code == 0) *pid = child;
  return code;
}

void cspawn_signal(const cspawn_child *child, int number) { kill(-child->pid, number); }

int cspawn_has_ended(const cspawn_child *child) {
  siginfo_t info = {0};
  return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child->pid;
}

int cspawn_reap(cspawn_child *child) {
  // While it is a zombie, its process id is not reused, so the group id is valid.
  kill(-child->pid, SIGKILL);
  int status = 0;
  while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {}
  if (child->ended >= 0) close(child->ended);
  child->ended = -1;
  return status;
}

int cspawn_wake_make(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void cspawn_wake(int descriptor) {
  uint64_t one = 1;
  ssize_t written = write(descriptor, &one, sizeof one);
  (void)written;
}

void cspawn_wake_clear(int descriptor) {
  uint64_t count;
  ssize_t got = read(descriptor, &count, sizeof count);
  (void)got;
}

void cspawn_ignore_broken_pipes(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

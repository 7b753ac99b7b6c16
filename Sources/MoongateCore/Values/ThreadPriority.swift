import Foundation

/// How much of a busy processor a thread gets, as Linux counts it: the event loops that pass requests on come first,
/// and what signs people in must not slow those down who are signed in.
package enum ThreadPriority: Int32 {
  /// Hashing. It has few threads, so it cannot take all processors, and somebody waits for each hash: a flood of
  /// requests that are refused without one must not hold up a PIN check.
  case hashing = 7
  /// The gateway's own answers, and the store.
  case answering = 10
  /// What nobody waits for.
  case quiet = 15

  /// Gives the calling thread this priority; costs a system call. It cannot be raised again.
  package func take() {
    // Linux keeps a nice value for each thread; 0 is the calling one (setpriority(2), "C library/kernel differences").
    setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, rawValue)
  }
}

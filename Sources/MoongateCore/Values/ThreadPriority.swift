import Foundation

/// The CPU priority of a thread, as a Linux nice value. Event loops that forward requests come first, and sign-ins must
/// not slow down requests of signed-in users.
package enum ThreadPriority: Int32 {
  /// For hashing. It has few threads, so it cannot occupy all processors, and a client waits for each hash: a flood of
  /// requests that are refused without hashing must not delay a PIN check.
  case hashing = 7
  /// For the gateway's own responses and the store.
  case answering = 10
  /// For background work.
  case lowPriority = 15

  /// Sets the priority of the calling thread, with one system call. The priority cannot be raised again.
  package func take() {
    // Linux keeps a nice value for each thread; 0 is the calling thread (setpriority(2), "C library/kernel
    // differences").
    setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, rawValue)
  }
}

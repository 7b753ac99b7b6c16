import CSpawn
import Foundation
import MoongateCore
import MoongateExec
import MoongateProgram

/// The new process of an upgrade. All calls block, so use a dedicated thread.
final class Successor {
  enum Event: Equatable {
    case said(UpgradeMessage)
    /// The process has exited or was stopped, with a sentence that says how.
    case ended(String)
  }

  let process: pid_t
  private let program: ProgramCall
  private let control: ControlSocket
  /// The standard error of the process before it takes over that of this process.
  private let errors: CInt
  private var lastLine = ""
  private var text: [UInt8] = []
  private var isReaped = false

  /// Starts the process.
  /// - Parameters:
  ///   - handed: the listening sockets and other descriptors that follow its end of the control socket.
  ///   - note: the value of the environment variable, without the process id.
  /// - Throws: an error if the program cannot be started.
  init(_ program: ProgramCall, handing handed: [CInt], note: String) throws(StartProblem) {
    let (own, other) = try ControlSocket.pair()
    var pipes: [CInt] = [-1, -1]
    // All functions that start programs close every other descriptor in the child.
    guard pipe(&pipes) == 0, pipes.allSatisfy({ fcntl($0, F_SETFD, FD_CLOEXEC) == 0 }) else {
      throw StartProblem("A pipe cannot be created: \(String(cString: strerror(errno))).")
    }
    defer { close(pipes[1]) }
    var environment = ProcessInfo.processInfo.environment
    // These variables apply to this process only.
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"] { environment[name] = nil }
    environment[UpgradeMessage.variable] = "\(getpid()) \(note)"
    let variables = environment.map { "\($0.key)=\($0.value)" }.sorted()
    // Pass the real standard error in addition to the pipe: a program that fails to start writes the reason to the
    // pipe.
    let descriptors = [other.descriptor, STDERR_FILENO] + handed
    var child: pid_t = 0
    // This process closes the other end once the program has it.
    let code = withExtendedLifetime(other) {
      CStrings.with(program.arguments) { arguments in
        CStrings.with(variables) { variables in
          cspawn_start_successor(
            program.path, arguments, variables, descriptors, CInt(descriptors.count), pipes[1], &child)
        }
      }
    }
    guard code == 0 else {
      close(pipes[0])
      let reason =
        code == EACCES
        ? "the file is not executable by this user"
        : code == ENOENT ? "the file does not exist" : String(cString: strerror(code))
      throw StartProblem("\(program.path) cannot be started: \(reason).")
    }
    process = child
    self.program = program
    control = own
    errors = pipes[0]
  }

  deinit { close(errors) }

  func send(_ state: TransferredState) { control.send(state.line) }

  /// Returns the next event. Stops the process if the time limit expires first.
  /// - Parameter doing: the expected action, for the message.
  func next(within limit: Duration, doing: String) -> Event {
    let end = ContinuousClock.now + limit
    while true {
      let ready = ControlSocket.wait(isErrorsOpen ? [control.descriptor, errors] : [control.descriptor], until: end)
      if ready.isEmpty {
        kill()
        return .ended("The new process did not \(doing) within \(limit.asWritten) and was stopped.")
      }
      if ready.contains(errors) { readErrors() }
      guard ready.contains(control.descriptor) else { continue }
      switch control.next(within: .seconds(1)) {
      case .line(let line):
        if let message = UpgradeMessage(line) {
          guard case .failed(let why) = message else { return .said(message) }
          kill(after: .seconds(5))
          return .ended("The new process failed: \(why)")
        }
        kill()
        return .ended("The new version uses another upgrade protocol. Restart the gateway instead.")
      case .end, .silence: return .ended(describeEnd())
      }
    }
  }

  /// Makes a waiting `next` stop the process and return. Can be called from any thread.
  func stop() { control.stopReading() }

  /// Kills the process if it still runs.
  func kill() { kill(after: .zero) }

  private func kill(after timeLimit: Duration) {
    guard !isReaped else { return }
    var status: CInt = 0
    reap(&status, within: timeLimit)
  }

  private func describeEnd() -> String {
    var status: CInt = 0
    reap(&status, within: .seconds(2))
    while isErrorsOpen, !ControlSocket.wait([errors], until: .now).isEmpty { readErrors() }
    let number = status & 0x7f
    let how = number == 0 ? "ended with status \((status >> 8) & 0xff)" : "was killed by signal \(number)"
    let why = lastLine.isEmpty ? "See the log." : "Its last output: \(lastLine)"
    return "The new process (\(program.path)) \(how) before it was ready. \(why)"
  }

  private func reap(_ status: inout CInt, within timeLimit: Duration) {
    let end = ContinuousClock.now + timeLimit
    while waitpid(process, &status, WNOHANG) == 0 {
      if ContinuousClock.now >= end {
        Foundation.kill(process, SIGKILL)
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        break
      }
      DedicatedThread.block(for: .milliseconds(20))
    }
    isReaped = true
  }

  // MARK: standard error

  private var isErrorsOpen = true

  /// Forwards the output of the process and remembers the last line.
  private func readErrors() {
    var part = [UInt8](repeating: 0, count: 4_096)
    let got = read(errors, &part, part.count)
    guard got > 0 else {
      isErrorsOpen = got < 0 && errno == EINTR
      return
    }
    LineLog.standardError(String(decoding: part[..<got], as: UTF8.self))
    text = (text + part[..<got]).suffix(4_096)
    if let line = text.split(separator: UInt8(ascii: "\n")).last {
      lastLine = LineLog.plain(String(decoding: line.suffix(500), as: UTF8.self))
    }
  }
}

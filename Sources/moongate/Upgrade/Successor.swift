import CSpawn
import Foundation
import MoongateCore
import MoongateExec

/// The program that was started to serve in this process's place. All of it blocks: for a thread of its own.
final class Successor {
  enum Event: Equatable {
    case said(UpgradeMessage)
    /// It has ended, or was ended; a sentence that says how.
    case ended(String)
  }

  let process: pid_t
  private let program: ProgramCall
  private let control: ControlSocket
  /// What it writes on standard error before it has taken over this process's own.
  private let errors: CInt
  private var lastLine = ""
  private var text: [UInt8] = []
  private var isReaped = false

  /// Starts the program.
  /// - Parameters:
  ///   - handed: the listening sockets and what else it gets, behind its end of the control socket.
  ///   - note: describes them, for the environment variable.
  /// - Throws: a sentence.
  init(_ program: ProgramCall, handing handed: [CInt], note: String) throws(StartProblem) {
    let (own, other) = try ControlSocket.pair()
    var pipes: [CInt] = [-1, -1]
    // Each way of starting a program closes what it does not hand over.
    guard pipe(&pipes) == 0, pipes.allSatisfy({ fcntl($0, F_SETFD, FD_CLOEXEC) == 0 }) else {
      throw StartProblem("No more files can be opened: \(String(cString: strerror(errno))).")
    }
    defer { close(pipes[1]) }
    var environment = ProcessInfo.processInfo.environment
    // They are about this process, and not about that one.
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"] { environment[name] = nil }
    environment[UpgradeMessage.variable] = "\(getpid()) \(note)"
    let variables = environment.map { "\($0.key)=\($0.value)" }.sorted()
    // Standard error is handed over beside the pipe that stands for it: a program that cannot even begin says why in
    // the pipe.
    let descriptors = [other.descriptor, STDERR_FILENO] + handed
    var child: pid_t = 0
    // The other end is closed here once the program has it.
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
        ? "it is not executable, or not for this user"
        : code == ENOENT ? "there is no such file" : String(cString: strerror(code))
      throw StartProblem("\(program.path) cannot be started: \(reason).")
    }
    process = child
    self.program = program
    control = own
    errors = pipes[0]
  }

  deinit { close(errors) }

  func say(_ state: HandedState) { control.say(state.line) }

  /// The next thing that it says or that becomes of it. Ends it if there is nothing in time.
  /// - Parameter doing: what it should do, for the sentence.
  func next(within limit: Duration, doing: String) -> Event {
    let end = ContinuousClock.now + limit
    while true {
      let ready = ControlSocket.wait(isErrorsOpen ? [control.descriptor, errors] : [control.descriptor], until: end)
      if ready.isEmpty {
        kill()
        return .ended("The new program did not \(doing) within \(limit.asWritten), and was ended.")
      }
      if ready.contains(errors) { readErrors() }
      guard ready.contains(control.descriptor) else { continue }
      switch control.next(within: .seconds(1)) {
      case .line(let line):
        if let message = UpgradeMessage(line) {
          guard case .failed(let why) = message else { return .said(message) }
          kill(after: .seconds(5))
          return .ended("The new program does not serve: \(why)")
        }
        kill()
        return .ended("The new program speaks another language of upgrades: restart the gateway once instead.")
      case .end, .silence: return .ended(describeEnd())
      }
    }
  }

  /// Lets a `next` that waits end the program and return. May be called by any thread.
  func stop() { control.stopReading() }

  /// Ends the program, if it has not ended by itself.
  func kill() { kill(after: .zero) }

  private func kill(after patience: Duration) {
    guard !isReaped else { return }
    var status: CInt = 0
    reap(&status, within: patience)
  }

  private func describeEnd() -> String {
    var status: CInt = 0
    reap(&status, within: .seconds(2))
    while isErrorsOpen, !ControlSocket.wait([errors], until: .now).isEmpty { readErrors() }
    let number = status & 0x7f
    let how = number == 0 ? "ended with status \((status >> 8) & 0xff)" : "was ended by signal \(number)"
    let why = lastLine.isEmpty ? "See the log." : "It says: \(lastLine)"
    return "The new program, \(program.path), \(how) before it served. \(why)"
  }

  private func reap(_ status: inout CInt, within patience: Duration) {
    let end = ContinuousClock.now + patience
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

  /// Passes on what it writes, and remembers the last line.
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

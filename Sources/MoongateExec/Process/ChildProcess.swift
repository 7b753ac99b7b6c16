import CSpawn
import Foundation

/// A running program, confined to the thread that started it. No method blocks.
final class ChildProcess {
  private var child: cspawn_child
  private(set) var isInputOpen = true
  private(set) var isOutputOpen = true
  private(set) var isErrorsOpen = true

  /// Starts the program.
  /// - Throws: an error for the operator.
  init(_ specification: ProgramSpecification) throws(ProgramFault) {
    var child = cspawn_child()
    var step: UnsafePointer<CChar>?
    let environment = specification.environment.map { "\($0.key)=\($0.value)" }.sorted()
    let code = CStrings.with([specification.path] + specification.arguments) { arguments in
      CStrings.with(environment) { environment in
        cspawn_start(specification.path, arguments, environment, specification.folder, &child, &step)
      }
    }
    guard code == 0 else {
      throw .notStarted(Self.sentence(code, at: step.map { String(cString: $0) } ?? "", specification))
    }
    self.child = child
  }

  private static func sentence(_ code: Int32, at step: String, _ specification: ProgramSpecification) -> String {
    let reason = String(cString: strerror(code))
    switch (step, code) {
    case ("program", ENOENT) where access(specification.path, F_OK) == 0:
      return "cannot be run: the interpreter in its first line does not exist"
    case ("program", ENOENT): return "cannot be run: the file does not exist"
    case ("program", EACCES): return "cannot be run: it is not executable (`chmod +x \(specification.path)`)"
    case ("program", ENOEXEC):
      return "cannot be run: it is not a program; a script needs a first line like `#!/usr/bin/env python3`"
    case ("folder", _): return "cannot be run in \(specification.folder): \(reason)"
    default: return "cannot be run: \(reason)"
    }
  }

  var identifier: pid_t { child.pid }
  var input: Int32 { child.input }
  var output: Int32 { child.output }
  var errors: Int32 { child.errors }
  /// A descriptor that is readable when the program has exited; -1 if the kernel does not support it, so that the state
  /// must be polled.
  var ended: Int32 { child.ended }

  var hasEnded: Bool { cspawn_has_ended(&child) != 0 }

  /// - Returns: the number of accepted bytes; 0 if the pipe is full; nil if the program has closed its input.
  func write(_ bytes: ArraySlice<UInt8>) -> Int? {
    let written = bytes.withUnsafeBytes { Foundation.write(child.input, $0.baseAddress, $0.count) }
    if written >= 0 { return written }
    return errno == EAGAIN || errno == EINTR ? 0 : nil
  }

  enum Reading {
    case bytes([UInt8])
    /// No more data now.
    case empty
    /// End of file.
    case end
  }

  func readOutput(atMost most: Int) -> Reading {
    let reading = Self.read(child.output, atMost: most)
    if case .end = reading { closeOutput() }
    return reading
  }

  func readErrors(atMost most: Int) -> Reading {
    let reading = Self.read(child.errors, atMost: most)
    if case .end = reading { closeErrors() }
    return reading
  }

  private static func read(_ descriptor: Int32, atMost most: Int) -> Reading {
    guard descriptor >= 0 else { return .end }
    var isEnd = false
    let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
      let got = Foundation.read(descriptor, buffer.baseAddress, most)
      count = max(0, got)
      isEnd = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)
    }
    return isEnd ? .end : bytes.isEmpty ? .empty : .bytes(bytes)
  }

  func closeInput() {
    guard isInputOpen else { return }
    isInputOpen = false
    close(child.input)
    child.input = -1
  }

  func closeOutput() {
    guard isOutputOpen else { return }
    isOutputOpen = false
    close(child.output)
    child.output = -1
  }

  private func closeErrors() {
    guard isErrorsOpen else { return }
    isErrorsOpen = false
    close(child.errors)
    child.errors = -1
  }

  /// Sends a signal to the program and its process group.
  func signal(_ number: Int32) { cspawn_signal(&child, number) }

  /// Reaps the exited program, kills the rest of its process group and closes its descriptors.
  /// - Returns: how it ended, for example "ended with status 1".
  func reap() -> String {
    let status = cspawn_reap(&child)
    closeInput()
    closeOutput()
    closeErrors()
    let number = status & 0x7f
    return number == 0 ? "ended with status \((status >> 8) & 0xff)" : "was killed by signal \(number)"
  }
}

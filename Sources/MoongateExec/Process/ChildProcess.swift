import CSpawn
import Foundation

/// A program that runs, as the one thread that started it sees it. Nothing here waits.
final class ChildProcess {
  private var child: cspawn_child
  private(set) var isInputOpen = true
  private(set) var isOutputOpen = true
  private(set) var isErrorsOpen = true

  /// Starts the program.
  /// - Throws: a sentence for the operator.
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
      return "cannot be run: the interpreter that its first line names is not there"
    case ("program", ENOENT): return "cannot be run: there is no such file"
    case ("program", EACCES): return "cannot be run: say `chmod +x \(specification.path)`"
    case ("program", ENOEXEC):
      return "cannot be run: it is no program; a script's first line must be such as `#!/usr/bin/env python3`"
    case ("folder", _): return "cannot be run in \(specification.folder): \(reason)"
    default: return "cannot be run: \(reason)"
    }
  }

  var identifier: pid_t { child.pid }
  var input: Int32 { child.input }
  var output: Int32 { child.output }
  var errors: Int32 { child.errors }
  /// Readable when the program has ended; -1 where the kernel cannot tell: then it must be asked now and then.
  var ended: Int32 { child.ended }

  var hasEnded: Bool { cspawn_has_ended(&child) != 0 }

  /// - Returns: how many bytes it took; 0 where it takes none now; nil where it reads no more.
  func write(_ bytes: ArraySlice<UInt8>) -> Int? {
    let written = bytes.withUnsafeBytes { Foundation.write(child.input, $0.baseAddress, $0.count) }
    if written >= 0 { return written }
    return errno == EAGAIN || errno == EINTR ? 0 : nil
  }

  enum Reading {
    case bytes([UInt8])
    /// Nothing more now.
    case empty
    /// Nothing more ever.
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

  /// To the program and all that it started.
  func signal(_ number: Int32) { cspawn_signal(&child, number) }

  /// Takes an ended program from the kernel, with what is left of its group and of its descriptors.
  /// - Returns: how it ended: "ended with status 1".
  func reap() -> String {
    let status = cspawn_reap(&child)
    closeInput()
    closeOutput()
    closeErrors()
    let number = status & 0x7f
    return number == 0 ? "ended with status \((status >> 8) & 0xff)" : "was ended by signal \(number)"
  }
}

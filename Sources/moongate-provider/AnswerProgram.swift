import Foundation
import MoongateConformance
import MoongateProgram
import MoongateSDK

/// A program that computes an answer for a conformance subject: it reads a round as JSON from standard input and writes
/// the fields as JSON to standard output.
struct AnswerProgram: Sendable {
  /// The program and its arguments. A name with a slash is relative to the folder of the subject file; other names are
  /// looked up in PATH.
  let command: [String]
  /// The folder of the subject file, which is the working directory of the program.
  let folder: String

  /// The time limit for an answer.
  var timeLimit: Duration = .seconds(5)

  /// The maximum length of standard output, in bytes.
  private static let longest = 65_536
  /// The maximum length of standard error in messages, in bytes.
  private static let maxReported = 4_096

  private var path: String {
    guard let name = command.first else { return "" }
    return name.contains("/")
      ? URL(filePath: name, relativeTo: URL(filePath: folder, directoryHint: .isDirectory)).standardizedFileURL.path(
        percentEncoded: false)
      : "/usr/bin/env"
  }

  var canRun: Bool { FileManager.default.isExecutableFile(atPath: path) }

  /// - Parameter before: the content that the provider showed in earlier steps.
  /// - Throws: a `ScriptProblem` that says why there is no answer.
  func answer(to step: ConformanceSubject.Step, _ before: [Shown], field: String) async throws -> InputValue {
    let round = Round(step, before)
    let output = try await DedicatedThread.run(at: nil) { () async -> Result<[UInt8], ScriptProblem> in
      do throws(ScriptProblem) { return .success(try run(round)) } catch { return .failure(error) }
    }.get()
    guard let said = try? JSONDecoder().decode([String: SubjectText.Value].self, from: Data(output)) else {
      throw ScriptProblem("\(name) did not answer with a JSON object of fields, such as {\"\(field)\": \"…\"}")
    }
    guard let value = said[field] else {
      throw ScriptProblem("\(name) did not answer with a `\(field)`: print {\"\(field)\": \"…\"}")
    }
    return value.input
  }

  private var name: String { "the program \(command.first ?? "")" }

  /// A round, as JSON for the program.
  private struct Round: Encodable {
    struct Field: Encodable {
      let name: String
      let kind: InputField.Kind
      let length: Int?
      let required: Bool
    }

    struct Item: Encodable {
      let kind: String
      let text: String?
      let items: [String]?
      /// The call of a WebAuthn ceremony, and the JSON text of its options.
      let call: CeremonyCall?
      let options: String?

      init(_ shown: Shown) {
        if case .ceremony(let call, let options) = shown {
          (self.call, self.options) = (call, options)
        } else {
          (call, options) = (nil, nil)
        }
        switch shown {
        case .ceremony: (kind, text, items) = ("ceremony", nil, nil)
        case .text(let text): (kind, self.text, items) = ("text", text, nil)
        case .secret(let text): (kind, self.text, items) = ("secret", text, nil)
        case .qr(let text): (kind, self.text, items) = ("qr", text, nil)
        case .list(let lines): (kind, text, items) = ("list", nil, lines)
        }
      }
    }

    enum CodingKeys: String, CodingKey {
      case purpose, fields, shown, redirect, now
      case shownBefore = "shown_before"
    }

    let purpose: StepPurpose
    let fields: [Field]
    let shown: [Item]
    let shownBefore: [Item]
    let redirect: String?
    let now: Int64

    init(_ step: ConformanceSubject.Step, _ before: [Shown]) {
      purpose = step.purpose
      fields = step.fields.map { Field(name: $0.name, kind: $0.kind, length: $0.length, required: $0.isRequired) }
      shown = step.shown.map(Item.init)
      shownBefore = before.map(Item.init)
      redirect = step.redirect
      now = step.now
    }
  }

  /// Blocks until the program has answered or the time limit has passed.
  private func run(_ round: Round) throws(ScriptProblem) -> [UInt8] {
    // Use a file instead of a pipe: a program that does not read cannot block us, and one that has exited cannot cause
    // SIGPIPE.
    let file = NSTemporaryDirectory() + "moongate-round-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: file) }
    guard let json = try? JSONEncoder().encode(round),
      FileManager.default.createFile(atPath: file, contents: json, attributes: [.posixPermissions: 0o600]),
      let input = FileHandle(forReadingAtPath: file)
    else {
      throw ScriptProblem("\(name) was not started: its input could not be written to \(NSTemporaryDirectory())")
    }
    let (output, errors) = (Pipe(), Pipe())
    let process = Process()
    process.executableURL = URL(filePath: path)
    process.arguments = path == "/usr/bin/env" ? command : Array(command.dropFirst())
    process.currentDirectoryURL = URL(filePath: folder, directoryHint: .isDirectory)
    (process.standardInput, process.standardOutput, process.standardError) = (input, output, errors)
    do { try process.run() } catch {
      throw ScriptProblem("\(name) could not be started: \(error.localizedDescription)")
    }
    defer {
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
      process.waitUntilExit()
    }
    try? input.close()
    let end = ContinuousClock.now + timeLimit
    var (said, told): ([UInt8], [UInt8]) = ([], [])
    var open = [output.fileHandleForReading.fileDescriptor, errors.fileHandleForReading.fileDescriptor]
    while !open.isEmpty {
      let left = (end - .now) / .milliseconds(1)
      guard left > 0 else { throw ScriptProblem("\(name) did not answer within \(timeLimit)") }
      var polled = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&polled, nfds_t(polled.count), Int32(left) + 1) > 0 else { continue }
      for one in polled where one.revents != 0 {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = read(one.fd, &buffer, buffer.count)
        if count <= 0 {
          open.removeAll { $0 == one.fd }
        } else if one.fd == output.fileHandleForReading.fileDescriptor {
          said += buffer.prefix(count)
        } else {
          told = (told + buffer.prefix(count)).suffix(Self.maxReported)
        }
      }
      guard said.count <= Self.longest else { throw ScriptProblem("\(name) wrote more than \(Self.longest) bytes") }
    }
    // Both pipes are closed, but the process may take a moment to exit.
    while process.isRunning, ContinuousClock.now < end { DedicatedThread.block(for: .milliseconds(2)) }
    guard !process.isRunning else { throw ScriptProblem("\(name) did not end within \(timeLimit)") }
    guard process.terminationStatus == 0 else {
      let last =
        String(decoding: told, as: UTF8.self).split(whereSeparator: \.isNewline).last.map { ": \($0.prefix(200))" }
        ?? ""
      throw ScriptProblem("\(name) ended with status \(process.terminationStatus)\(last)")
    }
    return said
  }
}

import Foundation
import MoongateSDK
import Synchronization

/// Whether a report has the messages between the suite and the provider.
public enum ConformanceTrace: Sendable {
  case off
  /// With secret settings, codes, answers and what the person was shown replaced by what they are: a trace is pasted
  /// into tickets.
  case withoutSecrets
  case complete
}

/// The messages between the suite and a provider.
final class Trace: Sendable {
  /// So many messages are kept; those beyond are counted.
  private static let most = 2_000
  /// Characters of one message.
  private static let longest = 2_000

  private struct State {
    var messages: [String] = []
    var left = 0
    /// What must not be seen, by what is written in its place.
    var hidden: [(text: String, name: String)] = []
  }

  let isOn: Bool
  private let hides: Bool
  private let state: Mutex<State>

  /// - Parameter secrets: the secret settings, by name.
  init(_ trace: ConformanceTrace, secrets: [String: String]) {
    switch trace {
    case .off: (isOn, hides) = (false, true)
    case .withoutSecrets: (isOn, hides) = (true, true)
    case .complete: (isOn, hides) = (true, false)
    }
    state = Mutex(State())
    for (name, secret) in secrets.sorted(by: { $0.key < $1.key }) { hide(secret, as: "secret \(name)") }
  }

  /// What is to be hidden may be known only after a message has been noted: a program shows a key, and then it is known
  /// to be one.
  var messages: [String] {
    state.withLock { state in
      // Longer ones first: a code is a part of the message that carries it.
      let hidden = state.hidden.sorted { $0.text.utf8.count > $1.text.utf8.count }
      let shown = state.messages.map { message in
        let text = hidden.reduce(message) { $0.replacing($1.text, with: $1.name) }
        return text.count > Self.longest ? text.prefix(Self.longest) + "…" : text
      }
      return shown + (state.left > 0 ? ["… and \(state.left) more messages"] : [])
    }
  }

  /// Writes the name in place of the text from now on. Texts of under four bytes stand in any message.
  func hide(_ text: String, as name: String) {
    guard isOn, hides, text.utf8.count >= 4 else { return }
    state.withLock { state in
      for form in Self.forms(text) where !state.hidden.contains(where: { $0.text == form }) {
        state.hidden.append((form, "‹\(name)›"))
      }
    }
  }

  /// Notes a message.
  func note(_ message: @autoclosure () -> String) {
    guard isOn else { return }
    let text = message()
    state.withLock { state in
      guard state.messages.count < Self.most else {
        state.left += 1
        return
      }
      state.messages.append(text)
    }
  }

  /// The text as it is, and as JSON writes it: with and without escapes for what is not ASCII.
  private static func forms(_ text: String) -> Set<String> {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    let json =
      (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self).dropFirst().dropLast() }.map(String.init)
      ?? text
    let ascii = json.utf16.map {
      $0 < 0x80
        ? String(UnicodeScalar(UInt8($0)))
        : "\\u" + String(repeating: "0", count: 4 - String($0, radix: 16).count) + String($0, radix: 16)
    }
    return [text, json, ascii.joined()]
  }
}

/// A call of a provider in Swift as a line of a trace.
enum TracedCall {
  static func text(_ name: String, _ step: StepContext, _ input: ProviderInput) -> String {
    var parts = ["purpose: .\(step.purpose)", "account: \(account(step.account))"]
    if let identifier = step.identifier { parts.append("identifier: \(identifier.value)") }
    if !step.state.isEmpty { parts.append("state: \(bytes(step.state))") }
    parts.append("fields: \(text(input))")
    return "→ \(name)(\(parts.joined(separator: ", ")))"
  }

  static func text(_ input: ProviderInput) -> String {
    let fields = input.fields.sorted { $0.key < $1.key }.map { name, value in
      switch value {
      case .text(let text): "\(name): \"\(text)\""
      case .flag(let flag): "\(name): \(flag)"
      case .object(let text): "\(name): \(text)"
      case .other: "\(name): (neither text nor a flag)"
      }
    }
    return "[\(fields.isEmpty ? ":" : fields.joined(separator: ", "))]"
  }

  private static func account(_ account: StepAccount?) -> String {
    guard let account else { return "nil" }
    return "\(account.id)\(account.record.map { " with record \(bytes($0))" } ?? " without a record")"
  }

  static func bytes(_ bytes: [UInt8]) -> String {
    String(validating: bytes, as: UTF8.self).map { "\"\($0)\"" } ?? Hex.text(bytes)
  }

  /// An answer, as the provider's author writes it.
  static func text(_ answer: DryRun.CallResult.Answer) -> String {
    switch answer {
    case .opened(let opened): "← \(text(opened))"
    case .proved(let proof): "← .proved(record: \(text(proof.record)), proved: \(proof.proved.map(\.value)))"
    case .refused(let reason, let then): "← .refused(\"\(reason.rawValue)\"\(then.map { ", then: \(text($0))" } ?? ""))"
    case .malformed(let problem):
      "← InputProblem(field: \"\(problem.field)\", reason: .\(problem.reason), detail: \"\(problem.detail)\")"
    case .threw(let thrown): "← throws \(thrown.text)"
    case .late: "← no answer"
    }
  }

  private static func text(_ opened: DryRun.Opened) -> String {
    if let site = opened.redirect { return ".redirect(to: \"\(site)\", state: \(bytes(opened.state)))" }
    let fields = opened.fields.map { "\($0.name) (\($0.kind)\($0.isRequired ? "" : ", optional"))" }
    return ".ask(\(fields), state: \(bytes(opened.state)), showing: \(opened.shown))"
  }

  private static func text(_ record: Proof.Record) -> String {
    switch record {
    case .keep: ".keep"
    case .remove: ".remove"
    case .replace(let kept): ".replace(\(bytes(kept)))"
    case .replaceOnce(let kept): ".replaceOnce(\(bytes(kept)))"
    }
  }
}

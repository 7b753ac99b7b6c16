import Foundation
import MoongateSDK
import Synchronization

/// Whether a report contains the messages between the suite and the provider.
public enum ConformanceTrace: Sendable {
  case off
  /// Secret settings, codes, answers and shown content in any spelling, records and states are replaced by
  /// placeholders, so that a trace can be shared.
  case withoutSecrets
  case complete
}

/// The messages between the suite and a provider.
final class Trace: Sendable {
  /// The maximum number of messages; further ones are only counted.
  private static let most = 2_000
  /// The maximum length of a message, in characters.
  private static let longest = 2_000

  private struct State {
    var messages: [String] = []
    var left = 0
    /// The hidden texts with their placeholders.
    var hidden: [(text: String, name: String)] = []
    /// The hidden texts as they were given, for their other spellings.
    var secrets: [(text: String, name: String)] = []
  }

  let isOn: Bool
  let hides: Bool
  private let state: Mutex<State>

  /// - Parameter secrets: the secret settings by name.
  init(_ trace: ConformanceTrace, secrets: [String: String]) {
    switch trace {
    case .off: (isOn, hides) = (false, true)
    case .withoutSecrets: (isOn, hides) = (true, true)
    case .complete: (isOn, hides) = (true, false)
    }
    state = Mutex(State())
    for (name, secret) in secrets.sorted(by: { $0.key < $1.key }) { hide(secret, as: "secret \(name)") }
  }

  /// Replace hidden texts when reading: a text may be known as a secret only after its message was recorded, for
  /// example a shown key.
  var messages: [String] {
    state.withLock { state in
      // Replace longer texts first: a code is part of its message.
      let hidden = state.hidden.sorted { $0.text.utf8.count > $1.text.utf8.count }
      // Attack: a provider stores or logs what was typed in lower case, without spaces or encoded, and the trace with
      // it is pasted into a ticket.
      let spellings = SecretSpellings(state.secrets)
      let shown = state.messages.map { message in
        let kept = hides ? Self.withoutKept(message) : message
        let text = spellings.masked(hidden.reduce(kept) { $0.replacing($1.text, with: $1.name) })
        return text.count > Self.longest ? text.prefix(Self.longest) + "…" : text
      }
      return shown + (state.left > 0 ? ["… and \(state.left) more messages"] : [])
    }
  }

  /// Replaces the text by a placeholder from now on. Texts under four bytes are ignored because they could occur
  /// anywhere.
  func hide(_ text: String, as name: String) {
    guard isOn, hides, text.utf8.count >= 4 else { return }
    state.withLock { state in
      if !state.secrets.contains(where: { $0.text == text }) { state.secrets.append((text, name)) }
      for form in Self.forms(text) where !state.hidden.contains(where: { $0.text == form }) {
        state.hidden.append((form, "‹\(name)›"))
      }
    }
  }

  /// Records a message.
  func record(_ message: @autoclosure () -> String) {
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

  /// A line of a program without the contents of its records and states, which may hold secrets in a form that only the
  /// program knows.
  private static func withoutKept(_ message: String) -> String {
    message.replacing(/"(record|replace|state)"\s*:\s*"(?:[^"\\]|\\.)*"/) { match in
      "\"\(match.1)\":\"‹\(match.1 == "state" ? "state" : "record")›\""
    }
  }

  /// The text itself and its JSON forms, with and without escaped non-ASCII characters.
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

/// A call of a Swift provider as a line of a trace.
struct TracedCall {
  /// Whether the contents of records and states are hidden.
  let hidesKept: Bool

  func text(_ name: String, _ step: StepContext, _ input: ProviderInput) -> String {
    var parts = ["purpose: .\(step.purpose)", "account: \(account(step.account))"]
    if let identifier = step.identifier { parts.append("identifier: \(identifier.value)") }
    if !step.state.isEmpty { parts.append("state: \(kept(step.state, "state"))") }
    parts.append("fields: \(Self.text(input))")
    return "→ \(name)(\(parts.joined(separator: ", ")))"
  }

  private static func text(_ input: ProviderInput) -> String {
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

  private func account(_ account: StepAccount?) -> String {
    guard let account else { return "nil" }
    return "\(account.id)\(account.record.map { " with record \(kept($0, "record"))" } ?? " without a record")"
  }

  /// What a provider keeps, or its placeholder.
  private func kept(_ bytes: [UInt8], _ name: String) -> String {
    if hidesKept { return bytes.isEmpty ? "\"\"" : "‹\(name)›" }
    return String(validating: bytes, as: UTF8.self).map { "\"\($0)\"" } ?? Hex.text(bytes)
  }

  /// An answer in the notation of the Swift API.
  func text(_ answer: DryRun.CallResult.Answer) -> String {
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

  private func text(_ opened: DryRun.Opened) -> String {
    if let site = opened.redirect { return ".redirect(to: \"\(site)\", state: \(kept(opened.state, "state")))" }
    let fields = opened.fields.map { "\($0.name) (\($0.kind)\($0.isRequired ? "" : ", optional"))" }
    return ".ask(\(fields), state: \(kept(opened.state, "state")), showing: \(opened.shown))"
  }

  private func text(_ record: Proof.Record) -> String {
    switch record {
    case .keep: ".keep"
    case .remove: ".remove"
    case .replace(let bytes): ".replace(\(kept(bytes, "record")))"
    case .replaceOnce(let bytes): ".replaceOnce(\(kept(bytes, "record")))"
    }
  }
}

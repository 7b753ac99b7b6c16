import MoongateSDK
import Synchronization

/// Remembers the content shown to a scripted user and computes the user's answers.
final class ScriptMemory: Sendable {
  private let kept: [String: String]
  /// In the order of the steps, once per step.
  private let seen = Mutex<[[Shown]]>([])

  init(keeping kept: [String: String]) { self.kept = kept }

  func forget() { seen.withLock { $0 = [] } }

  /// - Parameter place: the place where the value of a field was written.
  /// - Throws: a `ScriptProblem` that says what is missing.
  func answer(
    _ values: [String: ScriptedValue], to step: ConformanceSubject.Step, place: (_ field: String) -> String
  ) async throws -> [String: InputValue]? {
    let before = seen.withLock { seen in
      let before = seen.filter { $0 != step.shown }
      seen = before + (step.shown.isEmpty ? [] : [step.shown])
      return before
    }
    var answer: [String: InputValue] = [:]
    let isAsked = { (field: String) in step.redirect != nil || step.fields.contains { $0.name == field } }
    for (field, value) in values.sorted(by: { $0.key < $1.key }) {
      if case .fixed(let fixed) = value { answer[field] = fixed }
      // The required content may not have been shown yet.
      guard isAsked(field) else { continue }
      do throws(ScriptProblem) {
        switch value {
        case .fixed: continue
        case .shown(let path): answer[field] = .text(try shown(path, before + [step.shown]))
        case .totp(let recipe):
          answer[field] = .text(recipe.code(key: try key(recipe.key, before + [step.shown]), at: step.now))
        case .computed(let compute): answer[field] = try await computed(compute, step, before.flatMap(\.self))
        }
      } catch {
        throw ScriptProblem("\(place(field)): \(error)")
      }
    }
    // The subject knows none of the requested fields.
    return step.fields.isEmpty || answer.keys.contains(where: isAsked) ? answer : nil
  }

  private func computed(
    _ compute: @Sendable (ConformanceSubject.Step, [Shown]) async throws -> InputValue?,
    _ step: ConformanceSubject.Step, _ before: [Shown]
  ) async throws(ScriptProblem) -> InputValue? {
    do { return try await compute(step, before) } catch { throw error as? ScriptProblem ?? ScriptProblem("\(error)") }
  }

  // MARK: shown content

  /// The text at a place of the shown content, from the last step that showed this kind.
  private func shown(_ path: String, _ steps: [[Shown]]) throws(ScriptProblem) -> String {
    guard let place = ShownPlace(path) else { throw ScriptProblem("\"\(path)\" \(ShownPlace.form)") }
    let texts = steps.map { place.texts(in: $0) }.last { !$0.isEmpty } ?? []
    if texts.indices.contains(place.index) { return texts[place.index] }
    let kinds = Set(steps.flatMap(\.self).map(\.kind)).sorted().joined(separator: ", ")
    throw ScriptProblem(
      texts.isEmpty
        ? "the provider has shown no `\(place.kind)` yet (it has shown \(kinds.isEmpty ? "nothing" : kinds))"
        : "the provider has shown \(texts.count) of `\(place.kind)`, and \"\(path)\" is number \(place.index + 1)")
  }

  private func key(_ name: String, _ steps: [[Shown]]) throws(ScriptProblem) -> [UInt8] {
    let text: String
    if let kept = kept[name] {
      text = kept
    } else if name == "key" {
      // The key, either as text or from the QR code.
      let shown = steps.reversed().flatMap(\.self)
      let found =
        shown.lazy.compactMap { if case .secret(let secret) = $0 { secret } else { nil } }.first
        ?? shown.lazy.compactMap { if case .qr(let address) = $0 { Self.secret(in: address) } else { nil } }.first
      guard let found else {
        throw ScriptProblem("the provider has shown no key yet: neither a `secret` nor a `qr` with an otpauth URL")
      }
      text = found
    } else {
      let shown = try shown(name, steps)
      text = Self.secret(in: shown) ?? shown
    }
    guard let key = Base32.decode(text), !key.isEmpty else {
      throw ScriptProblem("the key of \"\(name)\" is not in base32 (RFC 4648)")
    }
    return key
  }

  /// The `secret` of `otpauth://totp/…?secret=…`.
  private static func secret(in address: String) -> String? {
    guard address.hasPrefix("otpauth://"), let query = address.split(separator: "?").dropFirst().first else {
      return nil
    }
    return query.split(separator: "&").first { $0.hasPrefix("secret=") }.map { String($0.dropFirst("secret=".count)) }
  }
}

/// A place in the content that a provider shows: `secret`, `qr.1`, `list.0`.
public struct ShownPlace: Sendable, Equatable {
  /// The description of the notation, as the end of a sentence.
  public static let form =
    "is not a place in shown content: write \"text\", \"secret\", \"qr\", \"list.0\" or \"ceremony\""

  let kind: String
  let index: Int

  /// - Returns: nil if the text is not a place.
  public init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard let kind = parts.first.map(String.init), ["text", "secret", "qr", "list", "ceremony"].contains(kind),
      parts.count <= 2
    else { return nil }
    guard let index = parts.count == 2 ? Int(parts[1]) : 0, (0..<1_000).contains(index) else { return nil }
    self.kind = kind
    self.index = index
  }

  /// The texts of this kind; for lists, all lines.
  func texts(in shown: [Shown]) -> [String] {
    shown.filter { $0.kind == kind }.flatMap { item in
      switch item {
      case .text(let text), .secret(let text), .qr(let text): [text]
      case .list(let lines): lines
      case .ceremony(_, let options): [options]
      }
    }
  }
}

extension Shown {
  /// The name of the kind in messages.
  var kind: String {
    switch self {
    case .text: "text"
    case .secret: "secret"
    case .qr: "qr"
    case .list: "list"
    case .ceremony: "ceremony"
    }
  }
}

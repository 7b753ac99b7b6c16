import MoongateSDK

/// A value of an answer that is computed during the run from shown content or the suite's clock.
///
/// ```swift
/// var subject = ConformanceSubject(of: provider.descriptor)
/// subject.answers(right: ["code": .shown("list.0")], wrong: ["code": .fixed(.text("AAAAA-AAAAA"))])
/// subject.answers(right: ["code": .totp(TOTPRecipe(of: "key"))], wrong: ["code": .totp(TOTPRecipe(of: "key", offset: -120))])
/// ```
public enum ScriptedValue: Sendable {
  /// A constant value.
  case fixed(InputValue)
  /// The last shown content of a kind: `text`, `secret`, `qr`, or a line of a list, for example `list.0`. `secret.1` is
  /// the second secret of a step.
  case shown(String)
  /// A code of an authenticator app (RFC 6238).
  case totp(TOTPRecipe)
  /// A value computed from the step and all content shown before it.
  case computed(@Sendable (_ step: ConformanceSubject.Step, _ shownBefore: [Shown]) async throws -> InputValue?)
}

/// The parameters of an authenticator app's code (RFC 6238).
public struct TOTPRecipe: Sendable, Equatable {
  /// The hash of the code.
  public enum Algorithm: String, Sendable, CaseIterable {
    case sha1 = "SHA1"
    case sha256 = "SHA256"
  }

  /// The source of the key: `key` for the shown key (a secret in base32 or the `secret` of an otpauth URL), a place of
  /// shown content like `secret.1`, or the name of a kept text.
  public let key: String
  public let digits: Int
  /// In seconds.
  public let period: Int
  /// The offset in periods; -1 for the previous code.
  public let offset: Int
  public let algorithm: Algorithm

  /// - Parameters:
  ///   - digits: from 6 to 10.
  ///   - period: in seconds, at least 1.
  public init(of key: String, digits: Int = 6, period: Int = 30, offset: Int = 0, algorithm: Algorithm = .sha1) {
    self.key = key
    self.digits = min(max(digits, 6), 10)
    self.period = max(period, 1)
    self.offset = offset
    self.algorithm = algorithm
  }

  /// The code for a key at a time in milliseconds.
  func code(key: [UInt8], at now: Int64) -> String {
    let counter = now / 1_000 / Int64(period) + Int64(offset)
    let message = withUnsafeBytes(of: counter.bigEndian) { Array($0) }
    let digest: Digest =
      switch algorithm {
      case .sha1: .sha1
      case .sha256: .sha256
      }
    return OneTimeCode.truncate(digest.code(of: message, key: key), digits: digits)
  }
}

/// Why a scripted value could not be computed.
public struct ScriptProblem: Error, Sendable, CustomStringConvertible {
  public let description: String

  public init(_ description: String) { self.description = description }
}

extension ConformanceSubject {
  /// Sets the answers to values, some of which are computed during the run.
  /// - Parameters:
  ///   - right: the right answer by field. Fields that a round does not ask for are left out.
  ///   - wrong: the wrong answer by field.
  ///   - keeping: texts that the user has from before, by name, for example the key of an app.
  ///   - places: the place of a value in messages, for example `subject.json:4` for `right.code`.
  public mutating func answers(
    right: [String: ScriptedValue]?, wrong: [String: ScriptedValue]?, keeping: [String: String] = [:],
    places: @escaping @Sendable (_ path: String) -> String = { "the subject's `\($0)`" }
  ) {
    let memory = ScriptMemory(keeping: keeping)
    let own = reset
    reset = {
      memory.forget()
      await own()
    }
    if let right { self.right = { step in try await memory.answer(right, to: step) { places("right.\($0)") } } }
    if let wrong { self.wrong = { step in try await memory.answer(wrong, to: step) { places("wrong.\($0)") } } }
  }
}

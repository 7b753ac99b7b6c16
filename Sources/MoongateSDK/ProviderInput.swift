/// A value in the body of `begin` or `submit`. Codes are always text, so that leading zeros are kept.
public enum InputValue: Sendable, Equatable {
  case text(String)
  case flag(Bool)
  /// An object, as JSON text. The core passes it as `text` to a provider that asked for a field of kind `json`. Any
  /// other provider refuses it.
  case object(String)
  /// Anything else, such as a number or a list. Providers refuse it.
  case other
}

/// What the client sent for a step. Fields that a provider did not ask for are ignored.
public struct ProviderInput: Sendable {
  public let fields: [String: InputValue]
  /// ISO 3166-1 alpha-2: the `region` in gateway.lua; empty if it names none. A provider may prefer the client's own
  /// `region` field.
  public let defaultRegion: String

  public init(fields: [String: InputValue], defaultRegion: String) {
    self.fields = fields
    self.defaultRegion = defaultRegion
  }

  /// The field's text.
  /// - Throws: a problem with the field's name if it is missing or not text.
  public func text(_ name: String) throws(InputProblem) -> String {
    switch fields[name] {
    case .text(let text): return text
    case nil: throw InputProblem(field: name, reason: .invalidInput, detail: "\(name) is missing.")
    default: throw InputProblem(field: name, reason: .invalidInput, detail: "\(name) must be a string.")
    }
  }

  /// The field's text, or nil if it is missing or null.
  /// - Throws: a problem if it exists and is not text.
  public func optionalText(_ name: String) throws(InputProblem) -> String? {
    fields[name] == nil ? nil : try text(name)
  }
}

/// Malformed input: answered with 422 and never counted as an attempt.
public struct InputProblem: Error, Sendable, Equatable {
  /// The codes of malformed input.
  public enum Reason: String, Sendable {
    case invalidPhone = "invalid_phone"
    case invalidEmail = "invalid_email"
    case invalidInput = "invalid_input"
    case weakPIN = "weak_pin"
    case mismatch = "pin_mismatch"
    case weakPassword = "weak_password"
  }

  /// The name of the field, as the client sent it.
  public let field: String
  public let reason: Reason
  /// A sentence for the user.
  public let detail: String

  public init(field: String, reason: Reason, detail: String) {
    self.field = field
    self.reason = reason
    self.detail = detail
  }
}

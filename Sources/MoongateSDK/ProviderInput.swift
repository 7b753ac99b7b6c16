/// One value of a `begin` or `submit` body. Codes are text everywhere, so that a leading zero stays.
public enum InputValue: Sendable, Equatable {
  case text(String)
  case flag(Bool)
  /// An object, as JSON text. The core hands it as `text` to a provider that asked for a field of kind `json`; any
  /// other provider refuses it.
  case object(String)
  /// Anything else: a number or a list. A provider refuses it.
  case other
}

/// What the client sent for a step. Fields that a provider did not ask for are not looked at.
public struct ProviderInput: Sendable {
  public let fields: [String: InputValue]
  /// ISO 3166-1 alpha-2: what `region` in gateway.lua says. A provider may let the client's own `region` field win.
  public let defaultRegion: String

  public init(fields: [String: InputValue], defaultRegion: String) {
    self.fields = fields
    self.defaultRegion = defaultRegion
  }

  /// The field's text.
  /// - Throws: a problem that names the field where it is missing or is not text.
  public func text(_ name: String) throws(InputProblem) -> String {
    switch fields[name] {
    case .text(let text): return text
    case nil: throw InputProblem(field: name, reason: .invalidInput, detail: "\(name) is missing.")
    default: throw InputProblem(field: name, reason: .invalidInput, detail: "\(name) must be a string.")
    }
  }

  /// The field's text, or nil where it is missing or null.
  /// - Throws: a problem where it is there and is not text.
  public func optionalText(_ name: String) throws(InputProblem) -> String? {
    fields[name] == nil ? nil : try text(name)
  }
}

/// Input that cannot be read: answered 422, never counted as a try.
public struct InputProblem: Error, Sendable, Equatable {
  /// The closed set of codes that malformed input can have.
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
  /// A sentence for the person.
  public let detail: String

  public init(field: String, reason: Reason, detail: String) {
    self.field = field
    self.reason = reason
    self.detail = detail
  }
}

/// A kind of step: phone code, email code, PIN, …
///
/// There are two shapes. A ``CodeProvider`` says only how an identifier is read and how a code is delivered; the core
/// makes, keeps, counts and compares the codes. A ``FullProvider`` verifies by itself; the core still charges each try
/// before it is asked. Neither can name a session or mark a step as passed: only the core can.
public protocol Provider: Sendable {
  /// What it is and what it asks for. The same at every call: the core reads it once.
  var descriptor: ProviderDescriptor { get }

  /// Does what has to be done now and then, such as fetching a vendor's keys or removing what has expired there. Runs
  /// on one gateway of the installation at a time, about every `ProviderDescriptor.maintenanceInterval`, while the
  /// provider is configured. Nobody waits for it. It is cancelled after a minute.
  /// - Parameter tools: as for a step, without a hasher. `tools.store` refuses once the run has lost its lease.
  /// - Throws: what went wrong: it is logged and counted, and maintenance runs again after the next interval.
  func maintain(with tools: StepTools) async throws
}

extension Provider {
  /// There is nothing to do.
  public func maintain(with tools: StepTools) async throws {}
}

/// The versions of this library that a provider can be written for.
public enum SDKVersion {
  /// This one. It grows where something that providers were promised changes; what is only added changes nothing.
  ///
  /// Version 2: presentations, entrances, pages, flows and roles in the descriptor; what a flow is for in
  /// `StepContext`; refusals that ask again.
  public static let current = 2
}

/// A provider whose proof is a code that reached the person. About thirty lines.
public protocol CodeProvider: Provider {
  /// Reads the identifier that the code is to be sent to, in its canonical spelling.
  /// - Throws: what is wrong with it, and in which field.
  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier

  /// Sends a code. Called after the try was charged; a fault is not charged to the person.
  /// - Parameter tools: what the core lends for it: `tools.send(…)` for a message by the way that gateway.lua names,
  ///   `tools.web` for another site, the settings, a log.
  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault)
}

/// A code on its way out.
public struct CodeMessage: Sendable {
  public let code: String
  /// The policy's `message` with its parts filled in.
  public let text: String
  /// The last line that binds an SMS to our pages (`@host #code`), for providers that send SMS.
  public let domainBoundLine: String
  /// What messages call us.
  public let service: String
  /// The language of `text`, by its tag (BCP 47).
  public let language: String
  private let translate: @Sendable (String) -> String

  public init(code: String, text: String, domainBoundLine: String, service: String) {
    self.init(code: code, text: text, domainBoundLine: domainBoundLine, service: service, language: "en") { $0 }
  }

  /// - Parameter translate: gives an English text in the language.
  package init(
    code: String, text: String, domainBoundLine: String, service: String, language: String,
    translate: @escaping @Sendable (String) -> String
  ) {
    self.code = code
    self.text = text
    self.domainBoundLine = domainBoundLine
    self.service = service
    self.language = language
    self.translate = translate
  }

  /// An English text of the provider's own in the language of the message, as the provider's `words/` or the operator's
  /// `pages/` say it, with {service} filled in: `code.said("Your {service} verification code")`.
  public func said(_ english: String) -> String { translate(english).replacing("{service}", with: service) }
}

/// A kind of step: phone code, email code, PIN, …
///
/// There are two kinds of provider. A ``CodeProvider`` only reads an identifier and delivers a code; the core
/// generates, stores, counts and compares the codes. A ``FullProvider`` verifies by itself; the core still charges each
/// attempt before it calls. Neither can create a session or mark a step as passed.
public protocol Provider: Sendable {
  /// The declaration of the provider. Must not change: the core reads it once.
  var descriptor: ProviderDescriptor { get }

  /// Performs periodic work, such as fetching a vendor's keys or removing expired data there. Runs on one gateway of
  /// the installation at a time, about every `ProviderDescriptor.maintenanceInterval`, while the provider is
  /// configured. It runs in the background and is cancelled after a minute.
  /// - Parameter tools: as for a step, but without a hasher. `tools.store` throws once the run has lost its lease.
  /// - Throws: any error. It is logged and counted, and maintenance runs again after the next interval.
  func maintain(with tools: StepTools) async throws
}

extension Provider {
  /// Does nothing.
  public func maintain(with tools: StepTools) async throws {}
}

/// The versions of this library that a provider can be written for.
public enum SDKVersion {
  /// The version of this library. It increases with changes that break existing providers; additions do not count.
  public static let current = 1
  /// The versions whose providers this library supports.
  public static let supported = 1...current
}

/// A provider that proves an identifier by a code that is sent to it. About thirty lines.
public protocol CodeProvider: Provider {
  /// Reads the identifier that the code is sent to, in canonical form.
  /// - Throws: the problem and its field.
  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier

  /// Sends a code. Called after the send was charged. The user is not charged for a fault.
  /// - Parameter tools: the tools from the core: `tools.send(…)` sends a message by the channel that gateway.lua
  ///   configures; `tools.web` reaches other sites; the settings; a log.
  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault)
}

/// A code to be sent.
public struct CodeMessage: Sendable {
  public let code: String
  /// The policy's `message` with its placeholders filled in.
  public let text: String
  /// The last line that binds an SMS to our pages (`@host #code`), for providers that send SMS.
  public let domainBoundLine: String
  /// The service name in messages.
  public let service: String
  /// The language of `text`, as a BCP 47 tag.
  public let language: String
  private let translate: @Sendable (String) -> String

  public init(code: String, text: String, domainBoundLine: String, service: String) {
    self.init(code: code, text: text, domainBoundLine: domainBoundLine, service: service, language: "en") { $0 }
  }

  /// More than five parameters: one for each field.
  /// - Parameter translate: translates an English text into the language.
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

  /// The translation of the provider's own English text into the language of the message, from the provider's `words/`
  /// or the operator's `pages/`, with {service} filled in: `code.said("Your {service} verification code")`.
  public func said(_ english: String) -> String { translate(english).replacing("{service}", with: service) }
}

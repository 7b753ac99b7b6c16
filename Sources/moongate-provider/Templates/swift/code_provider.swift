import MoongateSDK

/// Verifies an email address with a code that is sent to it. The gateway creates, counts, compares and expires the
/// codes.
public struct NewProvider: CodeProvider {
  public let descriptor = ProviderDescriptor(
    name: "new_provider",
    beginFields: [InputField(name: "email", kind: .email)],
    submitFields: [InputField(name: "code", kind: .digits)],
    settings: [
      // To send through your own service, add a text "url" and a secret "token" here, and call tools.web.send(…) in
      // deliver.
      SettingField(
        name: "mail", kind: .messages(.mail), isRequired: true,
        help: "How its messages are sent: outbox() keeps them for the demo.")
    ],
    policy: PolicySource(file: "Sources/NewProvider/Resources/policy.lua", bytes: PackageResources.policy_lua),
    identifierKinds: [.email],
    facts: [.emailDomain],
    words: StepWords(
      title: "New provider", instruction: "We send you a code.", labels: ["email": "Email address", "code": "Code"],
      translations: [(tag: "hi", file: PackageResources.hi_words)]))

  public init() {}

  /// Reads the recipient of the code. Return one spelling per user: limits count by the identifier's value.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try input.email() }

  /// Sends the code. If it throws, the failure is logged and the attempt is not charged.
  public func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault)
  {
    try await tools.send(
      Message(
        channel: .mail, to: identifier.value, subject: "Your \(code.service) code", text: code.text, code: code.code))
  }
}

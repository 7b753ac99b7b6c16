import MoongateSDK

/// Proves an email address by a code sent to it.
///
/// It owns the mail; what an address is, is the SDK's (`EmailAddress`). Codes, tries, timers and accounts are the core's.
public struct EmailCode: CodeProvider {
  /// What it declares: `begin` takes `email`; gateway.lua says how mail leaves.
  public let descriptor: ProviderDescriptor

  public init() {
    descriptor = ProviderDescriptor(
      name: "email_code",
      beginFields: [InputField(name: "email", kind: .email)],
      submitFields: [InputField(name: "code", kind: .digits)],
      settings: [
        SettingField(name: "mail", kind: .messages(.mail), isRequired: true, help: "How mail leaves: outbox() keeps it for the demo.")
      ],
      policy: PolicySource(file: "Plugins/EmailCode/policy.lua", text: String(decoding: PackageResources.policy_lua, as: UTF8.self)),
      identifierKinds: [.email], facts: [.emailDomain],
      words: StepWords(
        title: "Your email address", instruction: "We send a code to it.", labels: ["email": "Email address", "code": "Code"]))
  }

  /// Reads `email`.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try input.email() }

  /// Sends the mail. The code is not in its subject, which shows on locked screens.
  public func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    try await tools.send(
      Message(
        channel: .mail, to: identifier.value, subject: "Your \(code.service) verification code",
        text: code.text + "\n\nIf you did not ask for it, ignore this mail and tell the code to nobody.", code: code.code))
  }
}

import MoongateSDK

/// Verifies an email address with a code sent by mail.
///
/// The provider writes the mail; the SDK parses addresses (`EmailAddress`). The core handles codes, attempts, timers
/// and accounts.
public struct EmailCode: CodeProvider {
  /// `begin` takes `email`. The settings in gateway.lua select how mail is sent.
  public let descriptor: ProviderDescriptor

  public init() {
    descriptor = ProviderDescriptor(
      name: "email_code",
      beginFields: [InputField(name: "email", kind: .email)],
      submitFields: [InputField(name: "code", kind: .digits)],
      settings: [
        SettingField(
          name: "mail", kind: .messages(.mail), isRequired: true,
          help: "How mail is sent: outbox() keeps it for the demo.")
      ],
      policy: PolicySource(file: "Plugins/EmailCode/policy.lua", bytes: PackageResources.policy_lua),
      flows: [
        PolicySource(file: "Plugins/EmailCode/flows/verify_email.lua", bytes: PackageResources.verify_email_lua),
        PolicySource(file: "Plugins/EmailCode/flows/change_email.lua", bytes: PackageResources.change_email_lua),
      ],
      cases: PolicySource(file: "Plugins/EmailCode/cases.lua", bytes: PackageResources.cases_lua),
      identifierKinds: [.email], facts: [.emailDomain],
      words: StepWords(
        title: "Your email address", name: "Code by email", instruction: "We send a code to it.",
        labels: ["email": "Email address", "code": "Code"], translations: PackageResources.translations),
      presentation: .codeEntry, entrance: .field(kind: .email, priority: 100), page: "email", role: .provesIdentifier)
  }

  /// Reads `email`.
  public func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try input.email() }

  /// Sends the mail. The subject does not contain the code, because subjects show on locked screens.
  public func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault)
  {
    try await tools.send(
      Message(
        channel: .mail, to: identifier.value, subject: code.said("Your {service} verification code"),
        text: code.text + "\n\n"
          + code.said("If you did not ask for it, ignore this email and do not share the code."), code: code.code))
  }
}

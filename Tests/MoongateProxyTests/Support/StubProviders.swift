import MoongateCore
import MoongateSDK

/// A provider with a digit pad and its own page, which never proves anyone.
struct StubPad: FullProvider {
  let descriptor = ProviderDescriptor(
    name: "pin", beginFields: [],
    submitFields: [
      InputField(name: "pin", kind: .digits, length: 6),
      InputField(name: "new_pin", kind: .digits, length: 6, isRequired: false),
    ],
    settings: [], policy: PolicySource(file: "stub.lua", text: ""), identifierKinds: [],
    presentation: .digitPad(count: 6, current: "pin", new: "new_pin"), page: "pin")

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .malformed(problem) }
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .malformed(problem) }

  private var problem: InputProblem { InputProblem(field: "pin", reason: .invalidInput, detail: "Nobody passes here.") }
}

/// A provider of mail codes with its own page, which sends nothing.
struct StubMail: CodeProvider {
  let descriptor = ProviderDescriptor(
    name: "email_code", beginFields: [InputField(name: "email", kind: .email)],
    submitFields: [InputField(name: "code", kind: .digits)], settings: [],
    policy: PolicySource(file: "stub.lua", text: ""), identifierKinds: [.email], page: "email")

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try input.email() }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    throw DeliveryFault(reason: "nothing is sent here")
  }
}

import MoongateSDK
import MoongateTesting
import Synchronization

@testable import MoongateCore

/// A code provider for a messenger that does not reach everybody. The test decides what it does; it keeps what it was
/// given to deliver.
final class ToyMessenger: CodeProvider {
  static let name = ProviderName(test: "whatsapp_code")
  static let notThere: RefusalReason = "not_on_whatsapp"

  private struct State {
    var fault: DeliveryFault?
    var codes: [String] = []
  }

  private let state = Mutex(State())

  /// The fault of the following deliveries; nil if they succeed.
  var fault: DeliveryFault? {
    get { state.withLock { $0.fault } }
    set { state.withLock { $0.fault = newValue } }
  }

  /// The codes that it was given, delivered or not.
  var codes: [String] { state.withLock { $0.codes } }

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: Self.name, beginFields: [InputField(name: "phone", kind: .phone)],
      submitFields: [InputField(name: "code", kind: .digits)], settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [.phone],
      deliveryReasons: [DeliveryReason(Self.notThere, "This number is not on WhatsApp.", isPermanent: true)])
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier {
    try ToyCode(name: Self.name).readIdentifier(input)
  }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    let fault = state.withLock { state in
      state.codes.append(code.code)
      return state.fault
    }
    if let fault { throw fault }
  }
}

extension EngineTestBench {
  /// A bench whose flows have the step `fallback { "whatsapp_code", "phone_otp" }`.
  static func withFallback(
    _ messenger: ToyMessenger, unknownAccount: UnknownAccount = .reveal,
    _ change: (inout TestGeneration) -> Void = { _ in }
  ) async throws -> EngineTestBench {
    try await EngineTestBench(others: [messenger, ToyPIN()]) { generation in
      for name in [ToyMessenger.name, EngineTestBench.phone] {
        generation.policies[name] = .test(name, unknownAccount: unknownAccount)
      }
      let step = StepRule(
        choices: [ToyMessenger.name, EngineTestBench.phone], isSkippable: false, when: nil, isFallback: true)
      for (name, account) in [("login", AccountRule.existing), ("register", .new), ("enter", .any)] {
        generation.flows[name] = .test(name, account: account, steps: [step])
      }
      change(&generation)
    }
  }

  /// Asks for a code by SMS instead of the messenger.
  func switched(_ id: FlowID) async -> Result<FlowView, Refusal> {
    await engine.begin(id, provider: EngineTestBench.phone.rawValue, fields: [:], client: client())
  }
}

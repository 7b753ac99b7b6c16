import Foundation
import MoongateSDK

// Signing in by a ceremony with nothing typed: its answer tells whose account it is.

extension FlowEngine {
  /// The step with the account that the answer names, where nothing has told before whose step it is.
  ///
  /// The user handle is what anybody may send. It opens nothing: it decides whose record the provider judges the answer
  /// by, and whose limits count the attempt. An account that there is not, or that has nothing of the provider, is
  /// judged by no record, and refused as a wrong answer is.
  ///
  /// Attack: an answer of the attacker's own credential with the victim's user handle. It is judged by the victim's
  /// record, in which the credential is not.
  func identified(_ step: StepRecord, by provider: any FullProvider, _ input: ProviderInput, _ record: FlowRecord)
    async throws(FlowError)
    -> StepRecord
  {
    let descriptor = provider.descriptor
    guard descriptor.role.contains(.findsAccount), record.account == nil, step.account == nil,
      record.stepPurpose(of: descriptor.name) == .prove,
      let field = step.asked(descriptor).first(where: { $0.kind == .json }),
      case .text(let answer)? = input.fields[field.name],
      let id = CeremonyAnswer.userHandle(in: answer), let account = try await loadAccount(id),
      account.credentials.contains(descriptor.name)
    else { return step }
    return step.about(AccountVersion(account))
  }
}

/// The answer of a browser's credential API, as far as the core reads it.
private struct CeremonyAnswer: Decodable {
  struct Response: Decodable { let userHandle: String? }

  let response: Response

  /// The user handle as text; nil where there is none.
  static func userHandle(in text: String) -> String? {
    guard let answer = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
      let handle = answer.response.userHandle, handle.utf8.count <= 128,
      let bytes = Base64URL.decode(handle)
    else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }
}

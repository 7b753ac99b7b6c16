import Foundation
import MoongateSDK

// Usernameless sign-in: the answer of a ceremony identifies the account.

extension FlowEngine {
  /// The step with the account that the answer names, if nothing has identified the account before.
  ///
  /// Any client can send any user handle, so it grants nothing. It only selects the record that the answer is checked
  /// against and the limits that count the attempt. If the account does not exist or has no credential of the provider,
  /// the answer is checked without a record and refused as a wrong answer.
  ///
  /// Attack: an answer of the attacker's own credential with the victim's user handle. It is checked against the
  /// victim's record, which does not contain the credential.
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

/// The answer of a browser's credential API, reduced to the fields that the core reads.
private struct CeremonyAnswer: Decodable {
  struct Response: Decodable { let userHandle: String? }

  let response: Response

  /// The user handle as text; nil if the answer has none.
  static func userHandle(in text: String) -> String? {
    guard let answer = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
      let handle = answer.response.userHandle, handle.utf8.count <= 128,
      let bytes = Base64URL.decode(handle)
    else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }
}

import MoongateSDK

// If several accounts claim an address and the code to it was right, the user chooses one of them.

/// An account that the user may choose. Shows only what its owner can recognise, and nothing that reveals who else has
/// an account.
package struct AccountOption: Sendable, Equatable {
  /// The value that the client sends back as `account`.
  package let value: String
  package let createdAt: Timestamp
  /// The time of the last request or sign-in.
  package let lastUsedAt: Timestamp
}

extension FlowCompletion {
  private static var accountField: String { "account" }

  /// Accepts the user's choice. Nothing is compared or counted: the user has already proved the address that all the
  /// accounts claim.
  func choose(_ choice: AccountChoice, _ input: ProviderInput, _ flow: FlowTransaction) async throws(FlowError)
    -> FlowView
  {
    let request = flow.request
    let typed: String
    do throws(InputProblem) { typed = try input.text(Self.accountField) } catch { throw request.refusal(error) }
    guard let number = Int(typed), choice.accounts.indices.contains(number - 1),
      let account = try await lookup.recoverable([choice.accounts[number - 1]], by: choice.identifier, flow).first
    else {
      throw request.refusal(
        .invalidInput, detail: "Choose one of the accounts shown.", field: Self.accountField)
    }
    try admission.demandUnlocked(account, request)
    return try await storeOrComplete(flow.changing { $0.chose(AccountVersion(account), by: choice.identifier) })
  }
}

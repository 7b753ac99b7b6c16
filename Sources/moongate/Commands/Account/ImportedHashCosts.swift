import MoongateCore
import MoongateSDK

/// The cost of imported hashes at providers that conceal who has an account: every refused secret is hashed with each
/// kind of hash that the provider has, so that the response time tells nothing.
struct ImportedHashCosts {
  /// A provider with imported hashes whose policy conceals.
  private struct Cost {
    let provider: ProviderName
    let kinds: [HashWork]
    /// The addresses that several accounts of the file claim, each with a hash.
    let shared: Set<String>

    var size: Int { kinds.map(\.size).reduce(0, +) }
  }

  private static let advice =
    "That is long: if it is so on an idle machine, import the accounts with the most expensive kind without their hashes. "

  private let costs: [Cost]

  /// - Parameter accounts: what the file holds.
  init(of accounts: [ImportedAccount], _ opened: OperatorStore) async throws {
    let kinds = try await opened.administration.importedHashes(with: accounts)
    costs = kinds.keys.sorted().compactMap { provider in
      guard opened.generation.policies[provider]?.unknownAccount == .conceal,
        let descriptor = opened.registry.descriptor(provider), !descriptor.identifierKinds.isEmpty
      else { return nil }
      let claims = accounts.filter { $0.records[provider] != nil }.flatMap(\.identifiers).filter { name in
        !name.isVerified && descriptor.identifierKinds.contains(name.identifier.kind)
      }
      let counts = Dictionary(claims.map { ($0.identifier.value, 1) }, uniquingKeysWith: +)
      return Cost(
        provider: provider, kinds: HashWork.missing(kinds[provider] ?? [], after: []),
        shared: Set(counts.filter { $0.value > 1 }.keys))
    }
  }

  /// Why the hashes cannot be imported; nil if they can.
  var excess: String? {
    costs.first { $0.size > HashWork.largestTogether }.map { cost in
      """
      \(cost.provider): the file and the store would have \(cost.kinds.count) kinds of hash (\(list(cost))), and each wrong \
      secret is hashed with all of them, because the policy conceals who has an account. That is more work than a store may have: two hashes of bcrypt 13, 1 to \
      1.8 seconds on an idle core. \
      Import the accounts with the most expensive kind without their hashes; they set a new secret after a code.
      """
    }
  }

  /// For the operator. Measures the hashes on this machine.
  var notes: [String] {
    get throws {
      try costs.flatMap { cost in
        // The time of SHA-crypt depends on the length of the secret.
        let longest = [UInt8](repeating: 0x78, count: ForeignCrypt.longestSecret)
        let time = try ContinuousClock().measure { for kind in cost.kinds { try kind.perform(of: longest) } }
        let milliseconds = Int(time / .milliseconds(1))
        let isLong = time > .seconds(1)
        var notes = [
          """
          \(cost.provider) conceals who has an account, so each wrong secret is also hashed as \(list(cost)): \
          \(milliseconds) ms on this machine, as busy as it was. \(isLong ? Self.advice : "")It ends when no account has such \
          a hash any more
          """
        ]
        if let address = cost.shared.min() {
          notes.append(
            """
            \(cost.shared.count) address\(cost.shared.count == 1 ? "" : "es"), such as \(address), \
            \(cost.shared.count == 1 ? "is" : "are") claimed by several accounts with imported hashes: there a wrong secret \
            takes longer, which tells that the address is known. Import them verified, or without their hashes
            """)
        }
        return notes
      }
    }
  }

  private func list(_ cost: Cost) -> String { cost.kinds.map(\.description).joined(separator: ", ") }
}

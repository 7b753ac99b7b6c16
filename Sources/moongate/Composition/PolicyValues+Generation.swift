import MoongateCore
import MoongateHTTP
import MoongatePolicy
import MoongateSDK

extension PolicyValues {
  /// The name of the listing of accounts.lua.
  static let accounts = "accounts"

  /// Creates the answer of `GET /policy/values` for a generation.
  init(_ generation: any PolicyGeneration, providers: ProviderRegistry) {
    let policies = generation.policies.values.sorted { $0.provider < $1.provider }.map { PolicyListing($0) }
    let all =
      policies + [
        PolicyListing(generation.tokenPolicy), PolicyListing(generation.accounts),
        PolicyListing(generation.routes, generation.gateway),
      ]
    self.init(
      generation: generation.id,
      listings: all.map { listing in
        Listing(
          name: listing.provider ?? Self.accounts,
          values: listing.values.map { Value(path: $0.path, value: $0.value, file: $0.file, line: $0.line) })
      },
      budgets: GuessBudget.all(of: generation, providers: providers).map {
        Budget(provider: $0.provider.rawValue, perDay: $0.perDay, per30Days: $0.per30Days)
      })
  }
}

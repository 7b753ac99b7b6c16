import Foundation
import MoongateCore
import MoongateHTTP
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// The policies of the running gateway, from its admin listener (`GET /policy/values`).
struct ActivePolicies: Decodable {
  /// The values of one policy file.
  struct Listing: Decodable {
    let name: String
    let values: [PolicyListing.Line]

    /// The same values in the format of `moongate policy show`.
    var listing: PolicyListing { PolicyListing(provider: name == Self.accounts ? nil : name, values: values) }

    static let accounts = PolicyValues.accounts
  }

  /// The number of guesses that one provider allows.
  struct Budget: Decodable, Equatable {
    let provider: String
    let perDay: Int?
    let per30Days: Int?

    enum CodingKeys: String, CodingKey {
      case provider
      case perDay = "guesses_per_day"
      case per30Days = "guesses_per_30d"
    }

    init(_ budget: GuessBudget) {
      provider = budget.provider.rawValue
      perDay = budget.perDay
      per30Days = budget.per30Days
    }
  }

  /// The name of the generation.
  let generation: String
  let policies: [Listing]
  let budgets: [Budget]

  /// - Returns: nil if no gateway is running.
  /// - Throws: an error if the server at the admin address is not this gateway's admin listener.
  static func ask(_ gateway: GatewaySettings) async throws(StartProblem) -> Self? {
    guard let answer = try await AdminClient(gateway).get("/policy/values") else { return nil }
    guard answer.status == 200, let policies = try? JSONDecoder().decode(Self.self, from: answer.body) else {
      throw StartProblem("The server at \(gateway.admin) is not this gateway's admin listener.", status: .couldNotRun)
    }
    return policies
  }
}

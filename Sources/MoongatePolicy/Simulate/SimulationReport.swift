import Foundation
import MoongateCore
import MoongateSDK

/// What an attack came to.
package struct SimulationReport: Sendable, Encodable {
  package let attacker: String
  package let provider: String
  /// Virtual seconds that were played; fewer than asked for where real time ran out.
  package let seconds: Int64
  package let askedSeconds: Int64
  package let addresses: Int
  package let guesses: Int
  /// That one of the guesses was right, each at a code of its own.
  package let probability: Double
  /// Codes that were sent, the owner's own included.
  package let messages: Int
  package let ownerSignIns: Int
  package let ownerRefused: Int
  package let ownerLockedOutSeconds: Int64
  /// People whom nobody attacks.
  package let otherSignIns: Int
  package let otherRefused: Int
  /// What `check` says is the most; nil where nothing bounds it, or it is not about guesses at one account.
  package let bound: Int?
  /// `risk_budget` of gateway.lua, where there is one and it is about one account.
  package let accepted: Double?

  enum CodingKeys: String, CodingKey {
    case attacker, provider, seconds, addresses, guesses, probability, messages, bound, accepted
    case askedSeconds = "asked_seconds"
    case ownerSignIns = "owner_sign_ins"
    case ownerRefused = "owner_refused"
    case ownerLockedOutSeconds = "owner_locked_out_seconds"
    case otherSignIns = "other_sign_ins"
    case otherRefused = "other_refused"
  }

  /// Whether all of the time that was asked for was played.
  package var isComplete: Bool { seconds >= askedSeconds }
  /// As much of it as all of the time would see, where it goes on as it went; nil where too little was played to tell.
  package func atThisPace(_ count: Int) -> Int? { seconds >= 3600 ? Int(Double(count) * Double(askedSeconds) / Double(seconds)) : nil }
  /// Whether the attacker gets in more likely than is accepted.
  package var isTooLikely: Bool { accepted.map { probability > $0 } ?? false }
}

extension Stage {
  func report(_ simulation: Simulation, _ policy: ProviderPolicy, accepted: Double?) -> SimulationReport {
    let space = pow(Double(policy.code.alphabet.characters.count), Double(policy.code.length))
    let bounds = policy.limits.filter { $0.action == .verify }.compactMap { GuessBound($0)?.most(in: simulation.span) }
    return SimulationReport(
      attacker: simulation.attacker.rawValue, provider: policy.provider.rawValue, seconds: (now - start).components.seconds,
      askedSeconds: simulation.span.components.seconds, addresses: simulation.addresses, guesses: guesses,
      probability: -expm1(Double(guesses) * log1p(-1 / space)), messages: gateway.mailbox.count, ownerSignIns: owner.signIns,
      ownerRefused: owner.refused, ownerLockedOutSeconds: lockedOut.components.seconds, otherSignIns: others.map(\.signIns).reduce(0, +),
      otherRefused: others.map(\.refused).reduce(0, +), bound: simulation.attacker == .guess ? bounds.min() : nil,
      accepted: simulation.attacker == .guess ? accepted : nil)
  }
}

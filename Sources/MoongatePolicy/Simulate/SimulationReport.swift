import Foundation
import MoongateCore
import MoongateSDK

/// The result of a simulated attack.
package struct SimulationReport: Sendable, Encodable {
  package let attacker: String
  package let provider: String
  /// Virtual seconds that were simulated; fewer than requested if the limit on real time was reached.
  package let seconds: Int64
  package let askedSeconds: Int64
  package let addresses: Int
  /// The number of networks (/24) that contain the addresses.
  package var networks = 1
  package let guesses: Int
  /// The probability that a guess was right, each at a separate code; nil if the number of secrets is unknown
  /// (passwords).
  package let probability: Double?
  /// Codes that were sent, including those of the owner.
  package let messages: Int
  package let ownerSignIns: Int
  package let ownerRefused: Int
  package let ownerLockedOutSeconds: Int64
  /// Users who are not attacked.
  package let otherSignIns: Int
  package let otherRefused: Int
  /// Refused users on a new device, to whom ceilings apply.
  package var otherRefusedOnNewDevices = 0
  /// Accounts that the attacker created; nil if the attack does not register accounts. The same holds for the next
  /// fields.
  package var registrations: Int? = nil
  /// Secrets that were hashed for these accounts.
  package var hashes: Int? = nil
  /// Users who registered meanwhile.
  package var otherRegistrations: Int? = nil
  package var otherRegistrationsRefused: Int? = nil
  /// The bound that `check` reports; nil if nothing bounds the guesses, or the attack does not guess at one account.
  package let bound: Int?
  /// `risk_budget` of gateway.lua, if it is set and applies to one account.
  package let accepted: Double?
  /// The counts when the clock last advanced. Attackers act in bursts, and the last one may be incomplete. Nil: the
  /// whole simulation counts.
  package var settled: (guesses: Int, messages: Int)? = nil
  /// Why the attacker gave up before the end; nil otherwise.
  package var ended: AttackEnd? = nil
  /// The course of events.
  package var timeline: SimulationTimeline? = nil
  /// The limit on real time, if it was reached.
  package var timeLimit: Duration? = nil
  /// The price of one message; nil if it is not given.
  package var price: Double? = nil
  /// The cost of the messages, in the currency of the price.
  package var cost: Double? { price.map { $0 * Double(messages) } }

  enum CodingKeys: String, CodingKey {
    case attacker, provider, seconds, addresses, networks, guesses, probability, messages, bound, accepted,
      registrations, hashes, ended, price, cost
    case askedSeconds = "asked_seconds"
    case ownerSignIns = "owner_sign_ins"
    case ownerRefused = "owner_refused"
    case ownerLockedOutSeconds = "owner_locked_out_seconds"
    case otherSignIns = "other_sign_ins"
    case otherRefused = "other_refused"
    case otherRefusedOnNewDevices = "other_refused_on_new_devices"
    case otherRegistrations = "other_registrations"
    case otherRegistrationsRefused = "other_registrations_refused"
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(attacker, forKey: .attacker)
    try container.encode(provider, forKey: .provider)
    try container.encode(seconds, forKey: .seconds)
    try container.encode(askedSeconds, forKey: .askedSeconds)
    try container.encode(addresses, forKey: .addresses)
    try container.encode(networks, forKey: .networks)
    try container.encode(guesses, forKey: .guesses)
    try container.encodeIfPresent(probability, forKey: .probability)
    try container.encode(messages, forKey: .messages)
    try container.encode(ownerSignIns, forKey: .ownerSignIns)
    try container.encode(ownerRefused, forKey: .ownerRefused)
    try container.encode(ownerLockedOutSeconds, forKey: .ownerLockedOutSeconds)
    try container.encode(otherSignIns, forKey: .otherSignIns)
    try container.encode(otherRefused, forKey: .otherRefused)
    try container.encode(otherRefusedOnNewDevices, forKey: .otherRefusedOnNewDevices)
    try container.encodeIfPresent(registrations, forKey: .registrations)
    try container.encodeIfPresent(hashes, forKey: .hashes)
    try container.encodeIfPresent(otherRegistrations, forKey: .otherRegistrations)
    try container.encodeIfPresent(otherRegistrationsRefused, forKey: .otherRegistrationsRefused)
    try container.encodeIfPresent(bound, forKey: .bound)
    try container.encodeIfPresent(accepted, forKey: .accepted)
    try container.encodeIfPresent(ended, forKey: .ended)
    try container.encodeIfPresent(price, forKey: .price)
    try container.encodeIfPresent(cost, forKey: .cost)
  }

  /// Whether the whole requested time was simulated.
  package var isComplete: Bool { seconds >= askedSeconds }
  /// The guesses and messages extrapolated to the requested time; nil if too little was simulated.
  package var atThisPace: (guesses: Int, messages: Int)? {
    guard seconds >= 3600 else { return nil }
    let counts = settled ?? (guesses, messages)
    let share = Double(askedSeconds) / Double(seconds)
    return (Int(Double(counts.guesses) * share), Int(Double(counts.messages) * share))
  }
  /// The accounts extrapolated to the requested time.
  package var registrationsAtThisPace: Int? {
    guard seconds >= 3600, let registrations else { return nil }
    return Int(Double(registrations) * Double(askedSeconds) / Double(seconds))
  }
  /// Whether the probability of success exceeds `risk_budget`.
  package var isTooLikely: Bool { probability.flatMap { probability in accepted.map { probability > $0 } } ?? false }
}

extension AttackEnvironment {
  func report(_ simulation: Simulation, _ policy: ProviderPolicy, accepted: Double?) -> SimulationReport {
    let space = target.space(policy.code)
    let bounds = policy.limits.filter { $0.action == .verify }.compactMap { GuessBound($0)?.most(in: simulation.span) }
    var report = SimulationReport(
      attacker: simulation.attacker.rawValue, provider: policy.provider.rawValue,
      seconds: (now - start).components.seconds,
      askedSeconds: simulation.span.components.seconds, addresses: simulation.addresses, guesses: guesses,
      probability: space.map { -expm1(Double(guesses) * log1p(-1 / $0)) }, messages: gateway.mailbox.count,
      ownerSignIns: owner.signIns,
      ownerRefused: owner.refused, ownerLockedOutSeconds: lockedOut.components.seconds,
      otherSignIns: others.map(\.signIns).reduce(0, +),
      otherRefused: others.map(\.refused).reduce(0, +), bound: simulation.attacker == .guess ? bounds.min() : nil,
      accepted: simulation.attacker == .guess ? accepted : nil, settled: settled)
    report.networks = simulation.networks
    report.ended = ended
    report.timeline = timeline
    report.price = simulation.price
    report.timeLimit = ranOutOfTime ? simulation.timeLimit : nil
    report.otherRefusedOnNewDevices = others.filter { !$0.keepsDevice }.map(\.refused).reduce(0, +)
    guard let newcomers else { return report }
    report.registrations = registrations
    report.hashes = hashes
    report.otherRegistrations = newcomers.registrations
    report.otherRegistrationsRefused = newcomers.refused
    return report
  }
}

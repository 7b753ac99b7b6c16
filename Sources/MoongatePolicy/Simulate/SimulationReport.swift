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
  /// Over how many networks (/24) they are spread.
  package var networks = 1
  package let guesses: Int
  /// That one of the guesses was right, each at a code of its own; nil where it is not known how many secrets there are
  /// (passwords).
  package let probability: Double?
  /// Codes that were sent, the owner's own included.
  package let messages: Int
  package let ownerSignIns: Int
  package let ownerRefused: Int
  package let ownerLockedOutSeconds: Int64
  /// People whom nobody attacks.
  package let otherSignIns: Int
  package let otherRefused: Int
  /// Of those that were refused: people on a new device, to whom ceilings apply.
  package var otherRefusedOnNewDevices = 0
  /// Accounts that the attacker has made; nil where that is not what the attack is about, as below.
  package var registrations: Int? = nil
  /// Secrets that were hashed for them.
  package var hashes: Int? = nil
  /// People who registered meanwhile.
  package var otherRegistrations: Int? = nil
  package var otherRegistrationsRefused: Int? = nil
  /// What `check` says is the most; nil where nothing bounds it, or it is not about guesses at one account.
  package let bound: Int?
  /// `risk_budget` of gateway.lua, where there is one and it is about one account.
  package let accepted: Double?
  /// What there had been when time last went by: attackers act in bursts, and the last one may be cut short. nil: all
  /// of it.
  package var settled: (guesses: Int, messages: Int)? = nil
  /// Why the attacker went away before the end; nil where they did not.
  package var ended: AttackEnd? = nil
  /// What happened when.
  package var timeline: SimulationTimeline? = nil
  /// How long it was let play in real time, where that ran out.
  package var patience: Duration? = nil
  /// What one message costs; nil where nobody said.
  package var price: Double? = nil
  /// What the messages cost, in the currency of the price.
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

  /// Whether all of the time that was asked for was played.
  package var isComplete: Bool { seconds >= askedSeconds }
  /// As many guesses and messages as all of the time would see, where it goes on as it went; nil where too little was
  /// played to tell.
  package var atThisPace: (guesses: Int, messages: Int)? {
    guard seconds >= 3600 else { return nil }
    let counts = settled ?? (guesses, messages)
    let share = Double(askedSeconds) / Double(seconds)
    return (Int(Double(counts.guesses) * share), Int(Double(counts.messages) * share))
  }
  /// As many accounts as all of the time would see.
  package var registrationsAtThisPace: Int? {
    guard seconds >= 3600, let registrations else { return nil }
    return Int(Double(registrations) * Double(askedSeconds) / Double(seconds))
  }
  /// Whether the attacker gets in more likely than is accepted.
  package var isTooLikely: Bool { probability.flatMap { probability in accepted.map { probability > $0 } } ?? false }
}

extension Stage {
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
    report.patience = ranOutOfTime ? simulation.patience : nil
    report.otherRefusedOnNewDevices = others.filter { !$0.keepsDevice }.map(\.refused).reduce(0, +)
    guard let newcomers else { return report }
    report.registrations = registrations
    report.hashes = hashes
    report.otherRegistrations = newcomers.registrations
    report.otherRegistrationsRefused = newcomers.refused
    return report
  }
}

import Foundation
import MoongateCore
import MoongateSDK

/// Replays the same traffic against two configurations with separate counters, and lists the decisions that differ.
package struct PolicyDiff: Sendable, Encodable {
  /// Decisions of one kind with a different result.
  package struct DecisionChange: Sendable, Encodable {
    /// The act of the user: send, right or wrong.
    package let act: String
    /// `ok`, or the error code.
    package let old: String
    package let new: String
    /// The location of the rule that refuses now; if nothing refuses now, of the rule that refused before.
    package let rule: String?
    package let count: Int
    /// The time of the first one, in seconds since the beginning of the traffic.
    package let first: Int64
  }

  /// Decisions that differ for one reason: the first difference of each user, and the differences that follow from it.
  package struct Cause: Sendable, Encodable {
    /// The act of the user and its results, as in `DecisionChange`.
    package let act: String
    package let old: String
    package let new: String
    package let rule: String?
    /// How often this was the first difference of a user.
    package let count: Int
    /// The time of the first one, in seconds since the beginning of the traffic.
    package let first: Int64
    /// The number of affected users.
    package let people: Int
    /// Later differences of the same users, until their decisions are the same again, by act.
    package let followUps: [String: Int]

    enum CodingKeys: String, CodingKey {
      case act, old, new, rule, count, first, people
      case followUps = "follow_ups"
    }
  }

  /// The answer to an act.
  private struct Answer: Equatable {
    let name: String
    let rule: String?

    static func == (left: Self, right: Self) -> Bool { left.name == right.name }
  }

  private struct Kind: Hashable {
    let act: String
    let old: String
    let new: String
    let rule: String?
  }

  package let decisions: Int
  package let people: Int
  /// All decisions that differ, the most frequent first.
  package let flips: [DecisionChange]
  /// The same differences by root cause, the one with the most decisions first.
  package let causes: [Cause]
  /// The settings that differ.
  package let settings: [SettingChange]
  /// Changed access to routes, and groups with a different definition.
  package let access: [AccessDiff.Change]
  package let groups: [AccessDiff.GroupChange]

  /// Whether any decision or access differs.
  package var differs: Bool { !flips.isEmpty || !access.isEmpty || !groups.isEmpty }

  enum CodingKeys: String, CodingKey { case decisions, people, flips, causes, settings, access, groups }

  /// More than five parameters: the two configurations, and everything that replays traffic.
  /// Replays the traffic against both configurations.
  package init(
    old: any PolicyGeneration, new: any PolicyGeneration, provider: ProviderName, traffic: Traffic,
    providers: ProviderRegistry,
    makeStore: () throws -> any Store
  ) async throws {
    let before = try await Self.play(traffic, old, provider, providers, try makeStore())
    let after = try await Self.play(traffic, new, provider, providers, try makeStore())
    var counts: [Kind: (count: Int, first: Int64)] = [:]
    var roots = RootCauses<Kind>()
    for (index, act) in traffic.acts.enumerated() {
      guard before[index] != after[index] else {
        // After a sign-in that both allow, earlier acts have no more effect.
        if act.kind == .right, after[index].name == "ok" { roots.isInStep(act.person) }
        continue
      }
      let kind = Kind(
        act: act.kind.rawValue, old: before[index].name, new: after[index].name,
        rule: after[index].rule ?? before[index].rule)
      let since = (act.at - (traffic.acts.first?.at ?? act.at)).components.seconds
      counts[kind, default: (0, since)].count += 1
      roots.differs(act.person, kind, act.kind.rawValue, after: since)
    }
    let reach = try AccessDiff(old: old, new: new)
    (access, groups) = (reach.access, reach.groups)
    causes = roots.all.map { kind, root in
      Cause(
        act: kind.act, old: kind.old, new: kind.new, rule: kind.rule, count: root.count, first: root.first,
        people: root.people.count,
        followUps: root.followUps)
    }.sorted { ($1.size, $0.first, $0.act, $0.new, $0.rule ?? "") < ($0.size, $1.first, $1.act, $1.new, $1.rule ?? "") }
    settings = SettingsDiff(old: old, new: new, providers: new.registry ?? providers).changes
    decisions = traffic.acts.count
    people = traffic.people
    flips = counts.map {
      DecisionChange(act: $0.act, old: $0.old, new: $0.new, rule: $0.rule, count: $1.count, first: $1.first)
    }
    .sorted { ($1.count, $0.act, $0.old, $0.new, $0.rule ?? "") < ($0.count, $1.act, $1.old, $1.new, $1.rule ?? "") }
  }

  /// The answer to each act.
  private static func play(
    _ traffic: Traffic, _ generation: any PolicyGeneration, _ provider: ProviderName, _ providers: ProviderRegistry,
    _ store: any Store
  ) async throws -> [Answer] {
    guard let policy = generation.policies[provider] else {
      throw SimulationProblem.notConfigured(provider, Array(generation.policies.keys))
    }
    let target = try Target(generation, provider, of: generation.registry ?? providers, wantsNew: false)
    let gateway = try VirtualGateway(
      generation, providers: providers, store: store, start: traffic.acts.first?.at ?? ManualClock.start)
    var people = SimulatedAccounts(gateway, target, provider)
    for person in 0..<traffic.people where !traffic.unregistered.contains(person) {
      try await people.makeAccount(person)
    }
    var flows: [Int: FlowID] = [:]
    var answers: [Answer] = []
    answers.reserveCapacity(traffic.acts.count)
    for act in traffic.acts {
      try Task.checkCancellation()
      gateway.clock.set(act.at)
      let client = try await people.client(gateway.client(act.address), of: act.person, heldBy: "person")
      // A secret is not sent, so entering it also begins the step.
      let opens = act.kind == .send || target.secret != nil && flows[act.person] == nil
      if opens {
        let created = await gateway.create(target.flow, by: client)
        var begun = created
        if case .success(let flow) = created {
          begun = await gateway.begin(
            flow.id, providers: target.senders(in: target.flow), fields: target.fields(act.person), by: client)
          if case .success = begun { flows[act.person] = flow.id }
        }
        if act.kind == .send || flows[act.person] == nil {
          answers.append(try await summary(of: begun, gateway))
          continue
        }
      }
      guard let flow = flows[act.person] else {
        answers.append(Answer(name: "no_code", rule: nil))
        continue
      }
      let code =
        target.secret == nil ? gateway.mailbox.latest(to: try target.identifier(act.person).value)?.code ?? "" : ""
      let answer = await gateway.submit(
        flow, fields: target.answer(isRight: act.kind == .right, code: code, policy.code), by: client)
      switch answer {
      case .success:
        flows[act.person] = nil
        people.forget(act.person, heldBy: "person")
      case .failure(let refusal):
        // After a flow has ended, the next attempt begins a new one, unless a code has to be sent first.
        if target.secret != nil, [.flowExpired, .flowNotFound, .stepNotOpen].contains(refusal.code) {
          flows[act.person] = nil
        }
      }
      answers.append(try await summary(of: answer, gateway))
    }
    return answers
  }

  private static func summary(of result: Result<FlowView, Refusal>, _ gateway: VirtualGateway) async throws -> Answer {
    switch result {
    case .success: Answer(name: "ok", rule: nil)
    case .failure(let refusal):
      Answer(name: refusal.code.name, rule: try await gateway.audit.event(refusal.decision)?.detail["at"])
    }
  }
}

extension PolicyDiff.Cause {
  /// The number of decisions with this cause.
  var size: Int { count + followUps.values.reduce(0, +) }
}

/// Tracks for each difference whether it is the first of a user, or follows from an earlier one.
private struct RootCauses<Kind: Hashable> {
  struct Root {
    var count = 0
    let first: Int64
    var people: Set<Int> = []
    var followUps: [String: Int] = [:]
  }

  private(set) var all: [Kind: Root] = [:]
  /// The first difference of each user whose decisions currently differ.
  private var current: [Int: Kind] = [:]

  /// Records that the decisions of the user are the same again.
  mutating func isInStep(_ person: Int) { current[person] = nil }

  mutating func differs(_ person: Int, _ kind: Kind, _ act: String, after since: Int64) {
    if let root = current[person] {
      all[root]?.followUps[act, default: 0] += 1
      return
    }
    current[person] = kind
    all[kind, default: Root(first: since)].count += 1
    all[kind]?.people.insert(person)
  }
}

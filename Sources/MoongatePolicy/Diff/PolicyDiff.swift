import Foundation
import MoongateCore
import MoongateSDK

/// The same traffic against two configurations, each with counters of its own, and the decisions that differ.
package struct PolicyDiff: Sendable, Encodable {
  /// Decisions of one kind that went another way.
  package struct Flip: Sendable, Encodable, Hashable {
    /// What the person did: send, right, wrong.
    package let act: String
    package let old: String
    package let new: String
  }

  package struct Count: Sendable, Encodable {
    package let act: String
    package let old: String
    package let new: String
    package let count: Int
    /// The first of them, in seconds since the traffic began.
    package let first: Int64
  }

  package let decisions: Int
  package let people: Int
  /// The most frequent first.
  package let flips: [Count]

  /// Plays the traffic against both.
  package init(
    old: any PolicyGeneration, new: any PolicyGeneration, provider: ProviderName, traffic: Traffic, providers: ProviderRegistry,
    makeStore: () throws -> any Store
  ) async throws {
    let before = try await Self.play(traffic, old, provider, providers, try makeStore())
    let after = try await Self.play(traffic, new, provider, providers, try makeStore())
    var counts: [Flip: (count: Int, first: Int64)] = [:]
    for (index, act) in traffic.acts.enumerated() where before[index] != after[index] {
      let flip = Flip(act: act.kind.rawValue, old: before[index], new: after[index])
      let since = (act.at - (traffic.acts.first?.at ?? act.at)).components.seconds
      counts[flip, default: (0, since)].count += 1
    }
    decisions = traffic.acts.count
    people = traffic.people
    flips = counts.map { Count(act: $0.act, old: $0.old, new: $0.new, count: $1.count, first: $1.first) }
      .sorted { ($1.count, $0.act, $0.old, $0.new) < ($0.count, $1.act, $1.old, $1.new) }
  }

  /// What each act was answered: `ok`, or the code of the refusal.
  private static func play(
    _ traffic: Traffic, _ generation: any PolicyGeneration, _ provider: ProviderName, _ providers: ProviderRegistry, _ store: any Store
  ) async throws -> [String] {
    guard let codes = providers[provider] as? any CodeProvider, let policy = generation.policies[provider] else {
      throw SimulationProblem.notConfigured(provider, Array(generation.policies.keys))
    }
    let target = try Target(generation, codes, wantsNew: false)
    let gateway = try VirtualGateway(generation, providers: providers, store: store, start: traffic.acts.first?.at ?? ManualClock.start)
    for person in 0..<traffic.people { _ = try await gateway.makeAccount(holding: [try target.identifier(person)]) }
    var flows: [Int: FlowID] = [:]
    var answers: [String] = []
    answers.reserveCapacity(traffic.acts.count)
    for act in traffic.acts {
      gateway.clock.set(act.at)
      let client = gateway.client(act.address)
      let answer: Result<FlowView, Refusal>
      switch act.kind {
      case .send:
        answer = await gateway.create(target.flow, by: client)
        guard case .success(let flow) = answer else { break }
        let begun = await gateway.begin(flow.id, provider: provider, fields: target.fields(act.person), by: client)
        if case .success = begun { flows[act.person] = flow.id }
        answers.append(name(begun))
        continue
      case .right, .wrong:
        guard let flow = flows[act.person] else {
          answers.append("no_code")
          continue
        }
        let right = gateway.mailbox.latest(to: try target.identifier(act.person).value)?.code ?? ""
        let code = act.kind == .right ? right : Stage.wrong(right, policy.code)
        answer = await gateway.submit(flow, fields: ["code": .text(code)], by: client)
        if case .success = answer { flows[act.person] = nil }
      }
      answers.append(name(answer))
    }
    return answers
  }

  private static func name(_ answer: Result<FlowView, Refusal>) -> String {
    switch answer {
    case .success: "ok"
    case .failure(let refusal): refusal.code.name
    }
  }
}

extension PolicyDiff {
  /// For a person, 80 columns at most.
  package var text: String {
    let total = flips.map(\.count).reduce(0, +)
    guard total > 0 else { return "\(decisions) decisions about \(people) people: none differs." }
    var lines = ["\(decisions) decisions about \(people) people: \(total) differ.", ""]
    for flip in flips {
      let count = String(flip.count)
      lines.append(
        "  " + String(repeating: " ", count: max(0, 7 - count.count)) + count + "  " + flip.act.padding(toLength: 6, withPad: " ", startingAt: 0)
          + flip.old + " → " + flip.new)
    }
    return lines.joined(separator: "\n")
  }
}

import Foundation
import MoongateCore
import MoongateSDK

/// The same traffic against two configurations, each with counters of its own, and the decisions that differ.
package struct PolicyDiff: Sendable, Encodable {
  /// Decisions of one kind that went another way.
  package struct Flip: Sendable, Encodable {
    /// What the person did: send, right, wrong.
    package let act: String
    /// `ok`, or the code of the refusal.
    package let old: String
    package let new: String
    /// Where the rule stands that refuses now; where nothing does, the one that refused.
    package let rule: String?
    package let count: Int
    /// The first of them, in seconds since the traffic began.
    package let first: Int64
  }

  /// What an act was answered.
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
  /// The most frequent first.
  package let flips: [Flip]
  /// Who gains and who loses access to routes, and groups that are defined otherwise.
  package let access: [AccessDiff.Change]
  package let groups: [AccessDiff.GroupChange]

  /// Whether anything differs.
  package var differs: Bool { !flips.isEmpty || !access.isEmpty || !groups.isEmpty }

  /// Plays the traffic against both.
  package init(
    old: any PolicyGeneration, new: any PolicyGeneration, provider: ProviderName, traffic: Traffic, providers: ProviderRegistry,
    makeStore: () throws -> any Store
  ) async throws {
    let before = try await Self.play(traffic, old, provider, providers, try makeStore())
    let after = try await Self.play(traffic, new, provider, providers, try makeStore())
    var counts: [Kind: (count: Int, first: Int64)] = [:]
    for (index, act) in traffic.acts.enumerated() where before[index] != after[index] {
      let kind = Kind(
        act: act.kind.rawValue, old: before[index].name, new: after[index].name, rule: after[index].rule ?? before[index].rule)
      let since = (act.at - (traffic.acts.first?.at ?? act.at)).components.seconds
      counts[kind, default: (0, since)].count += 1
    }
    let reach = try AccessDiff(old: old, new: new)
    (access, groups) = (reach.access, reach.groups)
    decisions = traffic.acts.count
    people = traffic.people
    flips = counts.map { Flip(act: $0.act, old: $0.old, new: $0.new, rule: $0.rule, count: $1.count, first: $1.first) }
      .sorted { ($1.count, $0.act, $0.old, $0.new, $0.rule ?? "") < ($0.count, $1.act, $1.old, $1.new, $1.rule ?? "") }
  }

  /// What each act was answered.
  private static func play(
    _ traffic: Traffic, _ generation: any PolicyGeneration, _ provider: ProviderName, _ providers: ProviderRegistry, _ store: any Store
  ) async throws -> [Answer] {
    guard let policy = generation.policies[provider] else {
      throw SimulationProblem.notConfigured(provider, Array(generation.policies.keys))
    }
    let target = try Target(generation, provider, of: generation.registry ?? providers, wantsNew: false)
    let gateway = try VirtualGateway(generation, providers: providers, store: store, start: traffic.acts.first?.at ?? ManualClock.start)
    var people = People(gateway, target, provider)
    for person in 0..<traffic.people where !traffic.strangers.contains(person) { try await people.makeAccount(person) }
    var flows: [Int: FlowID] = [:]
    var answers: [Answer] = []
    answers.reserveCapacity(traffic.acts.count)
    for act in traffic.acts {
      try Task.checkCancellation()
      gateway.clock.set(act.at)
      let client = try await people.client(gateway.client(act.address), of: act.person, heldBy: "person")
      // Nobody asks for a secret to be sent: who types one has begun.
      let opens = act.kind == .send || target.secret != nil && flows[act.person] == nil
      if opens {
        let created = await gateway.create(target.flow, by: client)
        var begun = created
        if case .success(let flow) = created {
          begun = await gateway.begin(flow.id, providers: target.senders(in: target.flow), fields: target.fields(act.person), by: client)
          if case .success = begun { flows[act.person] = flow.id }
        }
        if act.kind == .send || flows[act.person] == nil {
          answers.append(try await told(begun, gateway))
          continue
        }
      }
      guard let flow = flows[act.person] else {
        answers.append(Answer(name: "no_code", rule: nil))
        continue
      }
      let code = target.secret == nil ? gateway.mailbox.latest(to: try target.identifier(act.person).value)?.code ?? "" : ""
      let answer = await gateway.submit(flow, fields: target.answer(isRight: act.kind == .right, code: code, policy.code), by: client)
      switch answer {
      case .success:
        flows[act.person] = nil
        people.forget(act.person, heldBy: "person")
      case .failure(let refusal):
        // A flow that has ended is begun anew at the next try, where nothing has to be sent for it.
        if target.secret != nil, [.flowExpired, .flowNotFound, .stepNotOpen].contains(refusal.code) { flows[act.person] = nil }
      }
      answers.append(try await told(answer, gateway))
    }
    return answers
  }

  private static func told(_ answer: Result<FlowView, Refusal>, _ gateway: VirtualGateway) async throws -> Answer {
    switch answer {
    case .success: Answer(name: "ok", rule: nil)
    case .failure(let refusal): Answer(name: refusal.code.name, rule: try await gateway.audit.event(refusal.decision)?.detail["at"])
    }
  }
}

extension PolicyDiff {
  /// For a person, 80 columns.
  /// - Parameter colour: whether the reader is a terminal that shows it.
  package func text(colour: Bool) -> String {
    let paint = TerminalStyle(isOn: colour)
    let total = flips.map(\.count).reduce(0, +)
    let reach = AccessDiff(access: access, groups: groups).text(colour: colour)
    let what = "\(decisions) decisions about \(people) \(people == 1 ? "person" : "people")"
    guard total > 0 else { return (reach.map { $0 + "\n\n" } ?? "") + "\(what): \(paint.green("none differs"))." }
    let share = Double(total) / Double(decisions)
    var lines =
      (reach.map { [$0, ""] } ?? []) + ["\(what): \(paint.bold("\(total) differ")).", Bar.text(share) + "  \(GuessBudget.percent(share))", ""]
    let change = flips.map { $0.old.count + $0.new.count + 3 }.max() ?? 0
    lines.append(paint.dim("  \(Columns.right("count", to: 7))  act    \(Columns.pad("was → is", to: change))  by"))
    for flip in flips {
      let lead = "  \(Columns.right(String(flip.count), to: 7))  \(Columns.pad(flip.act, to: 5))  "
      let pair = "\(paint(flip.old)) → \(paint(flip.new))" + String(repeating: " ", count: change - flip.old.count - flip.new.count - 3)
      let rule = flip.rule ?? ""
      if lead.count + change + 2 + rule.count <= Columns.width {
        lines.append((lead + pair + "  " + rule).trimmedAtEnd)
      } else {
        lines += [(lead + pair).trimmedAtEnd, String(repeating: " ", count: lead.count) + rule]
      }
    }
    return lines.joined(separator: "\n")
  }
}

extension TerminalStyle {
  /// What was answered: green where it went well.
  fileprivate func callAsFunction(_ answer: String) -> String { answer == "ok" ? green(answer) : red(answer) }
}

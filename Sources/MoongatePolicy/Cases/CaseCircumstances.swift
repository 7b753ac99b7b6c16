import Foundation
import MoongateCore
import MoongateSDK

// The circumstances of a case: the clock, a known device, a service token, and guarantees.

extension PolicyCase.Kind {
  /// Whether a case can fail at this act.
  var isDemand: Bool {
    switch self {
    case .expect, .guarantee: true
    default: false
    }
  }
}

extension CaseReader {
  /// Reads `clock "2026-12-24T23:30+05:30"`.
  func clock(_ node: LuaNode) -> PolicyCase.Kind? {
    guard let text = Field.text(node, "clock", problems) else { return nil }
    guard let moment = Self.moment(text) else {
      problems.add(
        node.location, "clock",
        "\"\(text)\" is not a valid time: write date, time and the offset from UTC, as in \"2026-12-24T23:30+05:30\" or \"2026-12-24T18:00Z\""
      )
      return nil
    }
    return .clock(moment, asWritten: text)
  }

  /// Parses a date and time of RFC 3339, with optional seconds; nil for an invalid one, such as a day that the month
  /// does not have.
  static func moment(_ text: String) -> Timestamp? {
    let form = /([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?(Z|[+-][0-9]{2}:[0-9]{2})/
    guard let match = text.wholeMatch(of: form), let hour = Int(match.2), hour < 24, let minute = Int(match.3),
      minute < 60,
      let second = Int(match.4 ?? "0"), second < 60,
      let day = try? Date("\(match.1)T00:00:00Z", strategy: .iso8601), day.formatted(.iso8601).hasPrefix(match.1)
    else { return nil }
    var offset = 0
    if match.5 != "Z" {
      let parts = match.5.dropFirst().split(separator: ":").compactMap { Int($0) }
      guard parts.count == 2, parts[0] < 24, parts[1] < 60 else { return nil }
      offset = (parts[0] * 60 + parts[1]) * (match.5.hasPrefix("-") ? -60 : 60)
    }
    let seconds = Int64(day.timeIntervalSince1970) + Int64(hour * 3600 + minute * 60 + second - offset)
    return Timestamp(milliseconds: seconds * 1000)
  }

  /// Reads `token "ci"`, or `token { name = "ci", groups = { "ops" } }`.
  func token(_ node: LuaNode) -> PolicyCase.TokenSetup? {
    guard case .table = node.value else {
      return Field.text(node, "token", problems).map { PolicyCase.TokenSetup(name: $0, groups: []) }
    }
    guard let reader = TableReader(node, .caseToken, path: "token", problems: problems), let name = reader.text("name")
    else { return nil }
    let listed = reader.take("groups").flatMap { Field.texts($0, "token.groups", problems) } ?? []
    let defined = groups.map { Set($0.keys) }
    let named = listed.compactMap { text, node in
      EntitlementReader(problems: problems).known(text, at: node.location, "token.groups", defined: defined)
    }
    return PolicyCase.TokenSetup(name: name, groups: named.sorted())
  }

  /// Reads `guarantee "payments need a fresh code"`.
  func guarantee(_ node: LuaNode) -> PolicyCase.Kind? {
    guard let statement = Field.text(node, "guarantee", problems) else { return nil }
    if let statements, !statements.contains(statement) {
      problems.add(
        node.location, "guarantee",
        "guarantees.lua has no statement \"\(statement)\"\(Suggestion.phrase(for: statement, among: statements))")
      return nil
    }
    return .guarantee(statement)
  }
}

extension CaseRun {
  /// Sets the clock. Before the first act, any time is possible; afterwards, it can only advance.
  mutating func setClock(_ moment: Timestamp, _ act: PolicyCase.Act) throws -> String {
    let now = gateway.clock.now()
    if answer == nil, account == nil {
      // Nothing has happened yet, so the case begins at this time.
      start = moment
      gateway.clock.set(moment)
      return ""
    }
    guard moment >= now else {
      throw fail(act, "it is already \(now.text) in this case, and the clock can only advance")
    }
    gateway.clock.set(moment)
    return moment > now ? (moment - now).asWritten : ""
  }

  /// Gives the client the token of a device that has signed in to the case's account.
  /// - Throws: if the case has no account.
  mutating func addKnownDevice(_ act: PolicyCase.Act) async throws {
    guard knowsDevice, knownDevice == nil else { return }
    guard let account else {
      throw fail(
        act, "client { known = true } needs an account that the device has signed in to: add account { … } before it")
    }
    let passed = providers.all.map(\.descriptor.name).filter { generation.policies[$0] != nil }
    knownDevice = try await gateway.trustDevice(for: account, passed: passed)
  }

  /// - Returns: the outcome in words.
  func check(_ statement: String, _ act: PolicyCase.Act) throws -> String {
    guard let guarantee = generation.guarantees.first(where: { $0.statement == statement }) else {
      throw fail(act, "guarantees.lua has no statement \"\(statement)\"")
    }
    guard let signedIn else {
      throw fail(act, "no user is signed in here, so there is no session to check: complete a flow first")
    }
    let now = gateway.clock.now()
    let passed = signedIn.session.counted
    let age = { (name: ProviderName) in passed.last { $0.provider == name }.map { now - $0.at } ?? .zero }
    guard guarantee.demand.isMet(passed.map(\.provider), age: age) else {
      let names = passed.map(\.provider.rawValue).joined(separator: ", ")
      throw fail(
        act, "the session does not satisfy it (\(guarantee.location)): it passed \(names.isEmpty ? "nothing" : names)")
    }
    if let groups = guarantee.demand.group {
      guard case .success(let known) = gateway.entitlements(of: signedIn, in: generation), groups.isMet(by: known)
      else {
        throw fail(act, "the session does not satisfy it (\(guarantee.location)): the account is not in the group")
      }
    }
    return "satisfied"
  }
}

extension PolicyCase.TokenSetup {
  /// The token in Lua syntax.
  var asWritten: String {
    if groups.isEmpty { return "token \"\(name)\"" }
    return "token { name = \"\(name)\", groups = { \(groups.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")) } }"
  }
}

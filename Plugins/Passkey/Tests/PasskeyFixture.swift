import Foundation
import MoongateSDK
import Testing

@testable import Passkey

private struct NoWeb: WebClient {
  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer { throw WebFault(reason: "no web") }
}

/// A user with an authenticator, and the provider without core and store.
struct PasskeyFixture {
  /// An open step.
  struct Open {
    let fields: [InputField]
    let state: [UInt8]
    let shown: [Shown]

    /// The options of its ceremony.
    var options: String {
      get throws {
        for case .ceremony(_, let options) in shown { return options }
        throw CancellationError()
      }
    }
  }

  let provider = Passkey()
  var now: Int64 = 1_795_176_000_000
  /// nil if the account has none.
  var record: [UInt8]?
  var account = "ac_1"
  var hasAccount = true
  var settings: [String: SettingValue] = [:]
  var address = "https://auth.example.com/auth/callback/passkey"

  var kept: PasskeyRecord { get throws { try PasskeyRecord(bytes: try #require(record)) } }

  func step(_ purpose: StepPurpose, flow: FlowPurposeKind? = nil, state: [UInt8] = []) -> StepContext {
    StepContext(
      flow: "any", flowPurpose: flow, purpose: purpose,
      account: hasAccount
        ? StepAccount(
          id: account, record: record,
          identifiers: [Identifier(kind: .email, value: "a@example.com", display: "a@example.com")]) : nil,
      identifier: nil, state: state, now: now, callback: Callback(address: address, state: "s"),
      tools: StepTools(
        randomBytes: { count in (0..<count).map { _ in UInt8.random(in: 0...255) } },
        settings: StepSettings(values: ["rp_name": "Shop"].merging(settings) { _, new in new }), web: NoWeb()))
  }

  func begin(_ purpose: StepPurpose, flow: FlowPurposeKind? = nil, item: String? = nil) async throws -> Open {
    try open(
      try await provider.begin(
        step(purpose, flow: flow), ProviderInput(fields: item.map { ["item": .text($0)] } ?? [:], defaultRegion: "IN")))
  }

  func open(_ answer: StepAnswer, _ location: SourceLocation = #_sourceLocation) throws -> Open {
    guard case .ask(let fields, let state, let shown) = answer else {
      Issue.record("not asked: \(answer)", sourceLocation: location)
      throw CancellationError()
    }
    return Open(fields: fields, state: state, shown: shown)
  }

  func submit(_ purpose: StepPurpose, _ open: Open, _ fields: [String: String], flow: FlowPurposeKind? = nil)
    async throws -> StepAnswer
  {
    let step = step(purpose, flow: flow, state: open.state)
    let input = ProviderInput(fields: fields.mapValues { .text($0) }, defaultRegion: "IN")
    do throws(InputProblem) { try provider.check(step, input) } catch { return .malformed(error) }
    return try await provider.submit(step, input)
  }

  /// Adds a passkey.
  mutating func add(_ key: SoftAuthenticator, name: String = "") async throws {
    let begun = try await begin(.set)
    let named = try open(try await submit(.set, begun, ["credential": try key.create(try begun.options)]))
    guard case .proved(let proof) = try await submit(.set, named, ["name": name]),
      case .replaceOnce(let bytes) = proof.record
    else {
      throw CancellationError()
    }
    record = bytes
  }

  /// The result of a registration: nil if it is accepted.
  func registration(_ key: SoftAuthenticator) async throws -> RefusalReason? {
    let begun = try await begin(.set)
    return try outcome(of: try await submit(.set, begun, ["credential": try key.create(try begun.options)]))
  }

  /// The result of an assertion: nil if it is accepted.
  func assertion(_ key: SoftAuthenticator, _ purpose: StepPurpose = .prove) async throws -> RefusalReason? {
    let begun = try await begin(purpose)
    return try outcome(of: try await submit(purpose, begun, ["credential": try key.get(try begun.options)]))
  }

  func outcome(of answer: StepAnswer) throws -> RefusalReason? {
    switch answer {
    case .ask, .proved: return nil
    case .refused(let reason): return reason
    case .refusedAndAsked(let reason, let round):
      // Each challenge is valid for one response.
      #expect(round.shown.contains { if case .ceremony = $0 { true } else { false } })
      return reason
    case .malformed: return "malformed"
    case .redirect, .wait: throw CancellationError()
    }
  }
}

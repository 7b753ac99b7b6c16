import MoongateSDK
import Synchronization

/// Records the inputs of one decision, for `moongate policy explain`. If the decision is a refusal, the trace is
/// written to the audit trail. It holds no secrets, and identifiers only as keyed hashes.
final class DecisionTrace: Sendable {
  struct Subject: Sendable {
    var flow: String?
    var provider: ProviderName?
    /// The identifier's keyed hash (`KeyRing.logHash`).
    var identifier: String?
    /// The account's ID.
    var account: String?
    /// Where the flow was when it was loaded.
    var state: String?
  }

  struct State: Sendable {
    fileprivate var subject = Subject()
    fileprivate var lines: [String: String] = [:]
  }

  private let state = Mutex(State())

  /// Everything that was recorded so far.
  var recorded: State {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }

  var subject: Subject { state.withLock { $0.subject } }
  var lines: [String: String] { state.withLock { $0.lines } }

  func note(_ name: String, _ value: String?) { if let value { state.withLock { $0.lines[name] = value } } }

  /// Adds several lines.
  func note(_ lines: [String: String]) { state.withLock { $0.lines.merge(lines) { $1 } } }

  /// Sets the subject of the decision. What the new subject leaves open stays as it was.
  func about(_ subject: Subject) {
    state.withLock { state in
      state.subject.flow = subject.flow ?? state.subject.flow
      state.subject.provider = subject.provider ?? state.subject.provider
      state.subject.identifier = subject.identifier ?? state.subject.identifier
      state.subject.account = subject.account ?? state.subject.account
      state.subject.state = subject.state ?? state.subject.state
    }
  }

  /// Records the answer of a policy function and the facts that it read.
  func asked(_ function: FunctionName, _ answer: String, _ evidence: PolicyEvidence?, _ keys: KeyRing) {
    let place = evidence.map { "  \($0.location)" } ?? ""
    note("asked.\(function.path)", answer + place)
    for (name, value) in evidence?.traceLines(keys) ?? [:] where name != "at" { note(name, value) }
  }

  /// Records the state of limits that were checked but not charged.
  func uncharged(_ limits: [ResolvedLimit], _ states: [CounterState]) {
    for (limit, state) in zip(limits, states) {
      note("counter.\(limit.name)", "\(state.used) -> \(state.used) of \(limit.max)")
    }
  }

  /// Records the rule that decided: its path in the policy and its source location.
  func rule(_ path: String, at location: SourceLocation?) {
    note("rule", path)
    note("at", location?.description)
  }
}

extension RequestContext {
  /// Records the flow that the request is about, as it was loaded.
  func about(_ record: FlowRecord, _ keys: KeyRing) {
    trace.about(
      DecisionTrace.Subject(
        flow: record.name, provider: record.step?.provider,
        identifier: record.step?.identifier.map { keys.logHash($0.value) },
        account: record.account ?? record.step?.account, state: FlowMachine(record).state.summary))
  }

  /// Records that the limit decided, and its state.
  func decided(by limit: ResolvedLimit, used: Int?, lockedUntil: Timestamp?) {
    let written = generation.policies[limit.provider]?.limits.first { $0.name == limit.name }
    trace.rule("limits.\(limit.name)", at: written?.location)
    trace.note("per", limit.key.rawValue)
    trace.note("max", String(limit.max))
    trace.note("counts", limit.counts.rawValue)
    trace.note("window", limit.window.map { String($0.components.seconds) })
    trace.note("used", used.map(String.init))
    trace.note("locked_until", lockedUntil?.text)
  }

  /// Records that `registration` of accounts.lua decided.
  func decidedByRegistration() { trace.rule("registration", at: generation.accounts.locations["registration"]) }

  /// The refusal of a registration by `registration` of accounts.lua.
  func refusedByRegistration(_ code: RefusalCode) -> FlowError {
    decidedByRegistration()
    return refusal(code)
  }

  /// Records that a value of the provider's policy decided.
  func decided(by path: String, of provider: ProviderName?) {
    trace.rule(path, at: provider.flatMap { generation.policies[$0]?.locations[path] })
  }
}

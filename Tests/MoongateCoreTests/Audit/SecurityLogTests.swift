import Logging
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// What the log tells an operator about sign-ins, locks and changes.
@Suite struct SecurityLogTests {
  private let log = CapturedLog()

  /// Logs every event that the store of the bench writes.
  private func watched(_ bench: EngineTestBench) -> EngineTestBench {
    let security = SecurityLog(logger: log.logger)
    bench.store.memory.recorded.subscribe { security.note($0) }
    return bench
  }

  /// The logged lines of one kind.
  private func lines(_ kind: AuditEvent.Kind) -> [String] {
    log.lines.filter { $0.hasPrefix("notice \(kind.rawValue) ") }
  }

  /// The value after `name=` in a line.
  private func value(_ name: String, _ line: String) -> String? {
    line.split(separator: " ").first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.utf8.count + 1)) }
  }

  @Test func aSignInIsALineWithItsDecision() async throws {
    let bench = watched(try await EngineTestBench())
    let account = try await bench.registered()
    _ = try await bench.submit(try await bench.begun(), bench.code).get()
    #expect(lines(.accountCreated).count == 1 && lines(.sessionStarted).count == 2)
    let line = try #require(lines(.sessionStarted).last)
    #expect(
      value("account", line) == account.id && value("flow", line) == "login" && value("address", line) == "192.0.2.1")
    let decision = try #require(value("decision", line))
    #expect(try await bench.audit.event(DecisionID(text: decision))?.kind == .sessionStarted)
    // The log contains neither the code nor the number.
    #expect(!log.lines.contains { $0.contains("919999999999") || $0.contains(bench.code) })
  }

  @Test func aLockAndItsEndAreLines() async throws {
    let bench = watched(try await EngineTestBench())
    try await bench.registered()
    let id = try await bench.begun()
    for _ in 0..<5 { _ = await bench.submit(id, bench.wrong) }
    try await bench.audit.flush()
    let line = try #require(lines(.locked).first)
    #expect(value("limit", line) == "verify" && value("provider", line) == "phone_otp")
    #expect(value("until", line) == String((bench.clock.now() + .seconds(900)).seconds))
    #expect(value("identifier", line) == bench.keys.logHash("+919999999999"))
    // The lock name in the line is the one that an operator lifts it by.
    let lock = try #require(value("lock", line))
    let operators = AccountAdministration(
      store: bench.store, providers: try ProviderRegistry([]), keys: bench.keys, clock: bench.clock,
      random: SystemRandom()
    )
    #expect(try await operators.clearLock(lock) == .done)
    #expect(lines(.lockLifted).map { value("lock", $0) } == [lock])
    #expect(lines(.lockLifted).allSatisfy { value("decision", $0)?.hasPrefix("dc_") == true })
  }

  @Test func everyOperatorActionIsLogged() async throws {
    let bench = watched(try await EngineTestBench())
    let account = try await bench.registered().id
    let operators = AccountAdministration(
      store: bench.store, providers: try ProviderRegistry([]), keys: bench.keys, clock: bench.clock,
      random: SystemRandom()
    )
    _ = try await operators.lock(account)
    _ = try await operators.unlock(account)
    _ = try await operators.disable(account)
    _ = try await operators.endSessions(of: account)
    _ = try await operators.delete(account)
    for kind in [AuditEvent.Kind.accountLocked, .accountUnlocked, .accountDisabled, .sessionEnded, .accountDeleted] {
      #expect(lines(kind).count == 1, "\(kind)")
      #expect(lines(kind).allSatisfy { value("decision", $0)?.hasPrefix("dc_") == true })
    }
  }

  @Test func changesOfIdentifiersAndFactorsAreLines() async throws {
    let bench = watched(try await EngineTestBench.full())
    let first = try await bench.pass("register", EngineTestBench.phone, "919999999999", by: bench.client())
    let own = try #require(try await bench.session(first))
    let set = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get()
    #expect(lines(.factorSet).map { value("provider", $0) } == ["pin"])
    let setter = try #require(try await bench.session(set))
    let stepped = try await bench.secret("step_up", ["secret": "1"], by: bench.client(session: setter)).get()
    let owner = try #require(try await bench.session(stepped))
    _ = try await bench.pass("change_phone", EngineTestBench.phone, "918888888888", by: bench.client(session: owner))
    let line = try #require(lines(.identifierChanged).first)
    #expect(
      lines(.identifierChanged).count == 1 && lines(.identifierAdded).isEmpty && lines(.identifierRemoved).isEmpty)
    #expect(
      value("identifier", line) == bench.keys.logHash("+918888888888")
        && value("before", line) == bench.keys.logHash("+919999999999"))
    #expect(
      value("account", line) == own.account.id && value("identifier_kind", line) == "phone"
        && value("flow", line) == "change_phone")
    #expect(lines(.factorChanged).isEmpty && lines(.factorRemoved).isEmpty)
    #expect(!log.lines.contains { $0.contains("918888888888") || $0.contains("919999999999") })
  }

  /// Attack: a passcode is changed, or one of several passkeys removed, and nothing is logged.
  @Test func aFactorThatWasReplacedIsALine() async throws {
    let bench = watched(try await EngineTestBench.full())
    var own = try #require(
      try await bench.session(
        try await bench.pass("register", EngineTestBench.phone, "919999999999", by: bench.client())))
    own = try #require(
      try await bench.session(
        try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    )
    _ = try await bench.secret("pin_change", ["secret": "1", "new_secret": "2"], by: bench.client(session: own)).get()
    let line = try #require(lines(.factorChanged).first)
    #expect(lines(.factorChanged).count == 1 && lines(.factorRemoved).isEmpty && lines(.factorSet).count == 1)
    #expect(
      value("provider", line) == "pin" && value("flow", line) == "pin_change"
        && value("account", line) == own.account.id)
  }

  /// Refusals go to the audit trail; the log of a gateway under attack must stay readable.
  @Test func refusalsAreNotLogged() async throws {
    let bench = watched(try await EngineTestBench())
    let id = try await bench.begun("register")
    for _ in 0..<3 { _ = await bench.submit(id, bench.wrong) }
    try await bench.audit.flush()
    #expect(log.lines.isEmpty)
  }
}

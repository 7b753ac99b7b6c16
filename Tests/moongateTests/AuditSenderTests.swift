import Logging
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateGateway

/// The audit trail is sent to a sink at least once, in order, by one gateway at a time.
@Suite struct AuditSenderTests {
  /// A sink that tests can break.
  private final class Sink: AuditSink {
    private struct State {
      var lines: [String] = []
      var isDown = false
      /// Called with each accepted batch, before the sender knows.
      var taken: (@Sendable () async -> Void)?
    }

    private let state = Mutex(State())

    /// The decision ids of the received events.
    var ids: [String] { state.withLock { $0.lines } }

    func down(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }
    func whenTaken(_ body: @escaping @Sendable () async -> Void) { state.withLock { $0.taken = body } }

    func take(_ lines: [[UInt8]], at now: Timestamp) async throws(AuditSinkFault) {
      let taken = try state.withLock { state throws(AuditSinkFault) -> (@Sendable () async -> Void)? in
        if state.isDown { throw AuditSinkFault("down") }
        state.lines += lines.compactMap {
          String(decoding: $0, as: UTF8.self).firstMatch(of: /"uid":"(dc_\d+)"/).map { String($0.1) }
        }
        return state.taken
      }
      await taken?()
    }
  }

  private let clock = ManualClock()
  private let log = CapturedLog()
  private let store: any Store

  init() throws { store = try TestedStore.open(":memory:") }

  private func sender(_ sink: Sink, holder: String = "one") -> AuditSender {
    let settings = AuditSinkSettings.file(AuditFileSettings(path: "audit.log", rotate: 1 << 20, keep: 1))
    return AuditSender(
      settings, sink: sink, store: store, clock: clock, holder: holder, service: "Acme", logger: log.logger)
  }

  private func append(_ numbers: Range<Int>) async throws {
    try await store.append(
      numbers.map {
        AuditEvent(id: DecisionID(text: "dc_\($0)"), at: clock.now(), kind: .sessionStarted, account: "ac_1")
      })
  }

  private func ids(_ numbers: Range<Int>) -> [String] { numbers.map { "dc_\($0)" } }

  @Test func everythingIsSentOnceAndInOrder() async throws {
    try await append(0..<450)
    let sink = Sink()
    let sender = sender(sink)
    #expect(await sender.step() == .zero, "there is more")
    while await sender.step() == .zero {}
    #expect(sink.ids == ids(0..<450))
    try await append(450..<452)
    _ = await sender.step()
    #expect(sink.ids == ids(0..<452))
    #expect(sender.samples.sent == 452 && sender.samples.failures == 0)
  }

  /// The gateway is killed after the sink has accepted events and before the position is stored.
  @Test func killedSenderSendsAgain() async throws {
    try await append(0..<3)
    let sink = Sink()
    let first = sender(sink)
    sink.whenTaken { [clock] in clock.advance(by: .seconds(60)) }
    _ = await first.step()
    sink.whenTaken {}
    // The lease of the first sender has expired, so its result does not count.
    let second = sender(sink, holder: "two")
    _ = await second.step()
    #expect(sink.ids == ids(0..<3) + ids(0..<3), "at least once, none invented")
    try await append(3..<4)
    _ = await second.step()
    #expect(sink.ids.suffix(4) == ids(0..<4))
  }

  @Test func oneGatewaySendsAtATime() async throws {
    try await append(0..<3)
    let sink = Sink()
    let (first, second) = (sender(sink), sender(sink, holder: "two"))
    _ = await first.step()
    for _ in 0..<5 {
      _ = await second.step()
      _ = await first.step()
      clock.advance(by: .seconds(5))
    }
    #expect(sink.ids == ids(0..<3))
    #expect(second.samples.sent == 0 && second.samples.backlog == nil)
    // The first gateway is gone; the second continues at its position.
    clock.advance(by: .seconds(30))
    try await append(3..<5)
    _ = await second.step()
    #expect(sink.ids == ids(0..<5))
  }

  @Test func unavailableSinkLosesNoEventsAndIsLoggedOnceAMinute() async throws {
    try await append(0..<2)
    let sink = Sink()
    sink.down(true)
    let sender = sender(sink)
    var pauses: [Duration] = []
    for _ in 0..<8 { pauses.append(await sender.step()) }
    #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) })
    #expect(log.lines.count { $0.contains("cannot be sent") } == 1)
    #expect(sender.samples.failures == 8 && sender.samples.backlog == 2)
    clock.advance(by: .seconds(6 * 86_400))
    while try await store.prune(at: clock.now()) {}
    try await append(2..<3)
    #expect(await sender.step() == .seconds(60))
    #expect((sender.samples.lag ?? 0) > 500_000)
    #expect(log.lines.count { $0.contains("cannot be sent") } == 2)
    sink.down(false)
    _ = await sender.step()
    #expect(sink.ids == ids(0..<3))
    #expect(await sender.step() == .milliseconds(500), "and it goes on as before")
  }

  /// While a sink is down, more events than the quota arrive. They are kept until they are sent.
  @Test func unsentEventsAreNotPruned() async throws {
    let most = AuditQuota.security.most
    let sink = Sink()
    sink.down(true)
    let sender = sender(sink)
    _ = await sender.step()
    try await append(0..<(most + 500))
    while try await store.prune(at: clock.now()) {}
    let cursor = try await store.auditCursor(of: "file audit.log", at: clock.now())
    #expect(try await store.events(after: cursor, limit: 1).first?.event.id.text == "dc_0")
  }
}

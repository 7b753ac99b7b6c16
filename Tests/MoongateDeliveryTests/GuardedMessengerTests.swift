import Logging
import MoongateCore
import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateDelivery

@Suite("A guarded messenger") struct GuardedMessengerTests {
  /// A transport that fails as configured and can hold messages back.
  final class TestCarrier: MessageTransport {
    let site = "https://sms.example.com"
    let most = 2
    let fault = Mutex<TransportError?>(nil)
    let carried = Mutex<[String]>([])
    private let gates = Mutex<[CheckedContinuation<Void, Never>]?>(nil)

    func hold() { gates.withLock { $0 = [] } }

    func release() {
      let held = gates.withLock { gates in
        defer { gates = nil }
        return gates ?? []
      }
      for gate in held { gate.resume() }
    }

    func send(_ message: Message) async throws(TransportError) {
      carried.withLock { $0.append(message.text) }
      await withCheckedContinuation { gate in
        let isHeld = gates.withLock { gates in
          gates?.append(gate)
          return gates != nil
        }
        if !isHeld { gate.resume() }
      }
      if let fault = fault.withLock({ $0 }) { throw fault }
    }
  }

  let clock = ManualClock()
  let carrier = TestCarrier()
  let log = CapturedLog()

  private func messenger() -> GuardedMessenger { GuardedMessenger(carrier, clock: clock, logger: log.logger) }

  private func message(_ text: String) -> Message { Message(channel: .sms, to: "+919999999999", text: text) }

  @Test("fails at once while its site is down, and retries later") func circuit() async throws {
    let messenger = messenger()
    carrier.fault.withLock { $0 = TransportError("answered 500") }
    for _ in 0..<5 {
      await #expect(throws: DeliveryFault(reason: "https://sms.example.com: answered 500")) {
        try await messenger.send(message("a"))
      }
    }
    let until = (clock.now() + .seconds(10)).text
    await #expect(
      throws: DeliveryFault(
        reason: "https://sms.example.com failed repeatedly; the next attempt is at \(until)")
    ) {
      try await messenger.send(message("b"))
    }
    #expect(carrier.carried.withLock { $0.count } == 5)
    carrier.fault.withLock { $0 = nil }
    clock.advance(by: .seconds(10))
    try await messenger.send(message("c"))
    try await messenger.send(message("d"))
    #expect(carrier.carried.withLock { $0.suffix(2) } == ["c", "d"])
  }

  @Test("is not opened by addresses that do not exist") func attack() async throws {
    let messenger = messenger()
    carrier.fault.withLock { $0 = TransportError("RCPT failed: 550", isOfMessage: true) }
    for _ in 0..<50 { await #expect(throws: DeliveryFault.self) { try await messenger.send(message("a")) } }
    #expect(carrier.carried.withLock { $0.count } == 50)
  }

  @Test("limits concurrent messages; others wait") func line() async throws {
    let messenger = messenger()
    carrier.hold()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<10 { group.addTask { try? await messenger.send(message("\(number)")) } }
      while carrier.carried.withLock({ $0.count }) < 2 { await Task.yield() }
      for _ in 0..<100 { await Task.yield() }
      #expect(carrier.carried.withLock { $0.count } == 2)
      carrier.release()
    }
    #expect(carrier.carried.withLock { Set($0) } == Set((0..<10).map { "\($0)" }))
  }

  @Test("is shared by channels with equal settings") func shared() {
    let deliveries = Deliveries(
      outbox: Outbox(clock: clock), clock: clock, random: SeededRandom(seed: 1), web: UnreachableWeb(),
      logger: log.logger)
    let messenger = { (secret: String) -> ObjectIdentifier in
      let header = WebhookSettings.Header(name: "X", value: SecretText(secret))
      let settings = DeliverySettings.webhook(WebhookSettings(url: "https://a.example.com", headers: [header]))
      return ObjectIdentifier(deliveries.messenger(for: settings) as AnyObject)
    }
    let first = messenger("1")
    #expect(messenger("1") == first)
    #expect(messenger("2") != first)
  }
}

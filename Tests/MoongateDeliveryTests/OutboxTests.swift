import MoongateCore
import MoongateDelivery
import MoongateSDK
import MoongateTesting
import Testing

@Suite("The outbox") struct OutboxTests {
  let clock = ManualClock()

  @Test("lists messages with their times, newest first") func order() async throws {
    let outbox = Outbox(clock: clock)
    let begin = clock.now()
    try await outbox.send(Message(channel: .sms, to: "+919999999999", text: "first", code: "000001"))
    clock.advance(by: .seconds(60))
    try await outbox.send(Message(channel: .mail, to: "a@example.com", subject: "Hello", text: "second"))
    let entries = outbox.entries
    #expect(entries.map(\.id) == [2, 1])
    #expect(entries.map(\.message.text) == ["second", "first"])
    #expect(entries.map(\.at) == [begin + .seconds(60), begin])
  }

  @Test("keeps the last 10,000 messages") func bounded() async throws {
    let outbox = Outbox(clock: clock)
    for number in 1...(Outbox.capacity + 3) {
      try await outbox.send(Message(channel: .sms, to: "+91", text: "\(number)"))
    }
    let entries = outbox.entries
    #expect(entries.count == Outbox.capacity)
    #expect(entries.first?.message.text == "\(Outbox.capacity + 3)")
    #expect(entries.last?.message.text == "4")
    #expect(zip(entries, entries.dropFirst()).allSatisfy { $0.id == $1.id + 1 })
  }

  @Test("accepts concurrent messages") func parallel() async {
    let outbox = Outbox(clock: clock)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask { try? await outbox.send(Message(channel: .sms, to: "+91", text: "\(number)")) }
      }
    }
    #expect(Set(outbox.entries.map(\.id)) == Set(1...200))
  }

  @Test("is shared by all providers with outbox()") func shared() async throws {
    let deliveries = Deliveries(
      outbox: Outbox(clock: clock), clock: clock, random: SeededRandom(seed: 1), web: UnreachableWeb(),
      logger: CapturedLog().logger)
    try await deliveries.messenger(for: .outbox).send(Message(channel: .sms, to: "+91", text: "one"))
    try await deliveries.messenger(for: .outbox).send(Message(channel: .sms, to: "+91", text: "two"))
    #expect(deliveries.outbox.entries.count == 2)
  }
}

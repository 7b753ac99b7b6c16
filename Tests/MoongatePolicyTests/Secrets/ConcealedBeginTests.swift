import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

/// The begin of a step where the policy conceals who has an account.
@Suite struct ConcealedBeginTests {
  /// Attack: a step that begins costs nothing and is limited per address alone, so its time can be measured until it
  /// tells whether an identifier is known. The store does the same operations in the same order.
  @Test(arguments: [
    ("login", "email_code"), ("login_password", "password"),
  ])
  func knownAndUnknownDoTheSame(flow: String, provider: String) async throws {
    let store = MultiNodeStore([try SQLiteStore.memory()])
    let bench = try SecretsBench(store: store)
    try await bench.person()
    var operations: [[String]] = []
    for address in [SecretsBench.address, "nobody@example.com"] {
      let before = store.operations.count
      let begun = await bench.enter(flow, provider, ["email": address], by: bench.client())
      #expect(begun.told == "pending")
      operations.append(Array(store.operations[before...]))
      await bench.engine.deliveriesEnd()
    }
    #expect(operations[0] == operations[1] && operations[0].count > 2, "\(operations)")
  }

  /// Attack: a delivery that runs beside the response slows it down.
  @Test func messagesAreDeliveredAfterTheResponse() async throws {
    let bench = try SecretsBench()
    try await bench.person()
    let end = ResponseEnd()
    let begun = await ResponseEnd.$current.withValue(end) {
      await bench.enter("login", "email_code", ["email": SecretsBench.address], by: bench.client())
    }
    #expect(begun.told == "pending")
    for _ in 0..<1_000 { await Task.yield() }
    #expect(bench.mailbox.count == 0)
    end.reach()
    await bench.engine.deliveriesEnd()
    #expect(bench.mailbox.count == 1)
    // The end is reached once for all that follows.
    let later = await ResponseEnd.$current.withValue(end) {
      await bench.enter("login", "email_code", ["email": "nobody@example.com"], by: bench.client())
    }
    #expect(later.told == "pending")
    await bench.engine.deliveriesEnd()
    #expect(bench.mailbox.count == 1)
  }

  /// An operator's request reloads a configuration, whose cases read their messages before it is answered.
  @Test(.timeLimit(.minutes(1))) func messagesThatTheRequestWaitsForAreDelivered() async throws {
    let bench = try SecretsBench()
    try await bench.person()
    await ResponseEnd.$current.withValue(ResponseEnd()) {
      _ = await bench.enter("login", "email_code", ["email": SecretsBench.address], by: bench.client())
      await bench.engine.deliveriesEnd()
    }
    #expect(bench.mailbox.count == 1)
  }
}

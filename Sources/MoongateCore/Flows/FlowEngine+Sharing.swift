/// Flows that are not begun yet, when another process takes over (`moongate upgrade`).
extension FlowEngine {
  /// Stores the flows that wait in memory. Those that are created from now on are stored at once, as with several
  /// gateways.
  package func shareFlows() async throws(StoreFault) {
    try await pending.share { records throws(StoreFault) in
      _ = try await store.apply(records.map(Change.putFlow), at: clock.now())
    }
  }

  /// Keeps flows in memory again until they are begun: no other process serves from the store.
  package func keepFlows() { pending.keepAgain() }

  /// Runs the body while the flow, if it waits in memory, stays there.
  func working<Answer>(with id: FlowID?, _ body: () async throws(FlowError) -> Answer) async throws(FlowError) -> Answer
  {
    guard let id else { return try await body() }
    await pending.enter(id.hash)
    let outcome: Result<Answer, FlowError>
    do throws(FlowError) { outcome = .success(try await body()) } catch { outcome = .failure(error) }
    if let left = pending.leave(id.hash) {
      // If the store does not answer, the flow stays here alone and the person starts again.
      if (try? await store.apply([.putFlow(left)], at: clock.now())) != nil { pending.remove(left.id) }
    }
    return try outcome.get()
  }
}

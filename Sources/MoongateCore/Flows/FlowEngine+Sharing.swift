/// Shares pending flows with another process that takes over (`moongate upgrade`).
extension FlowEngine {
  /// Stores the flows that are pending in memory. From now on new flows are stored at once, as with several gateways.
  package func shareFlows() async throws(StoreFault) {
    try await pending.share { records throws(StoreFault) in
      _ = try await store.apply(records.map(Change.putFlow), at: clock.now())
    }
  }

  /// Keeps new flows in memory again until they begin, because no other process serves from the store.
  package func keepFlows() { pending.stopSharing() }

  /// Runs the body and keeps the flow in memory, if it is pending, until the body returns.
  func working<Answer>(with id: FlowID?, _ body: () async throws(FlowError) -> Answer) async throws(FlowError) -> Answer
  {
    guard let id else { return try await body() }
    await pending.enter(id.hash)
    let outcome: Result<Answer, FlowError>
    do throws(FlowError) { outcome = .success(try await body()) } catch { outcome = .failure(error) }
    if let left = pending.leave(id.hash) {
      // If the store is unavailable, the flow stays in memory and the user has to start again.
      if (try? await store.apply([.putFlow(left)], at: clock.now())) != nil { pending.remove(left.id) }
    }
    return try outcome.get()
  }
}

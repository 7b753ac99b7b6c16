import MoongateCore

extension SQLStore {
  package func providerValue(at place: ProviderValuePlace, at now: Timestamp) async throws(StoreFault) -> [UInt8]? {
    try await read { rows in try ProviderValueRows.find(place, at: now, rows) }
  }

  package func putProviderValue(
    _ value: ProviderValue, _ rule: ProviderValueRule, at now: Timestamp
  ) async throws(StoreFault) -> ProviderValueOutcome {
    try await write(at: now) { rows in try ProviderValueRows.put(value, rule, at: now, rows) }
  }

  package func takeProviderValue(
    at place: ProviderValuePlace, under lease: Lease?, at now: Timestamp
  ) async throws(StoreFault) -> TakenProviderValue {
    try await write(at: now) { rows in try ProviderValueRows.take(place, under: lease, at: now, rows) }
  }

  package func providerValues(after place: ProviderValuePlace?, limit: Int) async throws(StoreFault) -> [ProviderValue]
  {
    try await read { rows in try ProviderValueRows.all(after: place, limit: limit, rows) }
  }

  package func replaceProviderValue(_ old: ProviderValue, by new: ProviderValue, at now: Timestamp)
    async throws(StoreFault)
  {
    try await write(at: now) { rows in try ProviderValueRows.replace(old, by: new, rows) }
  }
}

extension SQLStore {
  package func claimRechecks(limit: Int, until end: Timestamp, at now: Timestamp) async throws(StoreFault)
    -> [ClaimedRecheck]
  {
    // Mostly nothing is due, and a store that is not written to is cheaper.
    guard try await read({ rows in try RecheckRows.isAnyDue(at: now, rows) }) else { return [] }
    return try await write(at: now) { rows in try RecheckRows.claim(limit, until: end, at: now, rows) }
  }

  package func acquireLease(
    _ name: String, by holder: String, for length: Duration, at now: Timestamp
  ) async throws(StoreFault) -> LeaseAnswer {
    try await write(at: now) { rows in try LeaseRows.acquire(name, by: holder, for: length, at: now, rows) }
  }

  package func renewLease(_ lease: Lease, for length: Duration, at now: Timestamp) async throws(StoreFault) -> Lease? {
    try await write(at: now) { rows in try LeaseRows.renew(lease, for: length, at: now, rows) }
  }

  package func releaseLease(_ lease: Lease, dueAt due: Timestamp, at now: Timestamp) async throws(StoreFault) {
    try await write(at: now) { rows in try LeaseRows.release(lease, dueAt: due, at: now, rows) }
  }
}

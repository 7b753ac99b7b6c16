import MoongateCore

extension SQLStore {
  package func appGrant(_ id: String, at now: Timestamp) async throws(StoreFault) -> LiveAppGrant? {
    try await read { rows in try AppGrantRows.find(id, at: now, rows) }
  }

  package func appGrant(refresh hash: TokenHash, at now: Timestamp) async throws(StoreFault) -> LiveAppGrant? {
    try await read { rows in try AppGrantRows.find(refresh: hash, at: now, rows) }
  }

  package func appConnections(of account: String) async throws(StoreFault) -> [AppConnection] {
    try await read { rows in try AppConnectionRows.all(of: account, rows) }
  }

  package func deviceRequest(device: TokenHash) async throws(StoreFault) -> DeviceRequest? {
    try await read { rows in try DeviceRequestRows.find(device: device, rows) }
  }

  package func deviceRequest(user: TokenHash, at now: Timestamp) async throws(StoreFault) -> DeviceRequest? {
    try await read { rows in try DeviceRequestRows.find(user: user, at: now, rows) }
  }

  package func claimAppNotices(limit: Int, until end: Timestamp, at now: Timestamp) async throws(StoreFault)
    -> [AppNotice]
  {
    // Mostly nothing is due, and a store that is not written to is cheaper.
    guard try await read({ rows in try AppGrantEnding.isAnyDue(at: now, rows) }) else { return [] }
    return try await write(at: now) { rows in try AppGrantEnding.claim(limit, until: end, at: now, rows) }
  }
}

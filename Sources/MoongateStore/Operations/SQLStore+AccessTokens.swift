import MoongateCore

extension SQLStore {
  package func accessToken(hashed hashes: [[UInt8]]) async throws(StoreFault) -> FoundAccessToken? {
    try await read { rows in try AccessTokenRows.find(hashed: hashes, rows) }
  }

  package func accessToken(_ id: String) async throws(StoreFault) -> FoundAccessToken? {
    try await read { rows in try AccessTokenRows.find(id, rows) }
  }

  package func accessTokens(of account: String?) async throws(StoreFault) -> [AccessToken] {
    try await read { rows in try AccessTokenRows.all(of: account, rows) }
  }

  package func accessTokensByKey() async throws(StoreFault) -> [String: Int] {
    try await read { rows in try AccessTokenRows.countByKey(rows) }
  }

  package func rehashAccessToken(
    _ id: String, from old: AccessTokenHash, to new: AccessTokenHash, at now: Timestamp
  ) async throws(StoreFault) {
    try await write(at: now) { rows in try AccessTokenRows.rehash(id, from: old, to: new, rows) }
  }

  package func recordAccessTokenUses(_ uses: [AccessTokenUse]) async throws(StoreFault) {
    guard let latest = uses.map(\.at).max() else { return }
    // In the same order on all nodes, as for sessions, to avoid deadlocks.
    let sorted = uses.sorted { ($0.id, $0.at) < ($1.id, $1.at) }
    let recorded = try await write(at: latest) { rows in
      var recorded: [AuditEvent] = []
      for use in sorted where try AccessTokenRows.record(use, rows) {
        for event in memory.places.located([use.event]) {
          try EventRows.append(event, encoded: event.json, rows)
          recorded.append(event)
        }
      }
      return recorded
    }
    memory.recorded.notify(recorded)
  }

  package func endedAccessTokens(at now: Timestamp, limit: Int) async throws(StoreFault) -> [AccessToken] {
    try await read { rows in try AccessTokenRows.ended(at: now, limit: limit, rows) }
  }
}

import MoongateCore
import MoongateSDK

// Imports of accounts.

extension SQLStore {
  package func existing(_ names: ImportedNames) async throws(StoreFault) -> ImportedNames {
    try await read { rows in try AccountImportRows.existing(names, rows) }
  }

  package func beginImport(at now: Timestamp) async throws(StoreFault) -> Lease? {
    try await write(at: now) { rows in try AccountImportRows.begin(at: now, rows) }
  }

  package func settleImport(at now: Timestamp) async throws(StoreFault) -> Bool {
    guard try await read({ rows in try AccountImportRows.isUnsettled(at: now, rows) }) else { return false }
    let (hasMore, sessions) = try await write(at: now) { rows in
      let notifications = ChangeNotifications()
      let hasMore = try AccountImportRows.settle(at: now, notifications, rows)
      try notifications.write(at: now, rows)
      return (hasMore, notifications.changes)
    }
    await memory.committed.notify(sessions)
    return hasMore
  }
}

import ArgumentParser
import Foundation
import MoongateCore
import MoongateStore

/// `moongate store backup`.
struct BackUpStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Write a consistent backup of the store to a file, also while gateways run.",
    discussion: """
      The file has mode 0600, and its format does not depend on the database. It is authenticated with the current master key, so a modified file is \
      refused. It is not encrypted and contains no master key: keep a copy of the key in another place.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The file to write.") var file: String
  @Flag(help: "Replace the file if it exists.") var overwrite = false

  func run() async throws {
    let gateway = try configuration.generation().gateway
    let keys = KeyRing(try KeySource(gateway.key).read())
    let store = try StoreCopier.named(nil, configuration)
    var rows = 0
    try StoreCopier.answering {
      try store.backUp(
        to: file, by: keys, overwrites: overwrite, at: SystemClock(floor: Timestamp(milliseconds: 0)).now()
      ) { rows += $0.rows }
    }
    print(
      "\(store.name) is backed up in \(file): \(rows) rows, schema \(StoreCopier.knownVersion), master key \(keys.currentName)."
    )
  }
}

/// `moongate store restore`.
struct RestoreStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Put a backup into the store of gateway.lua. All gateways must be stopped.",
    discussion: """
      The whole file is checked before anything is written, and a failed restore leaves the store unchanged. The store must be empty unless you \
      use --replace. Sessions and flows are left out unless you use --keep-sessions, because a session that ended since the backup would become valid again. A backup \
      of SQLite can be restored to PostgreSQL, and the other way round.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The backup file.") var file: String
  @Flag(help: "Delete the current contents of the store.") var replace = false
  @Flag(help: "Restore the sessions and flows of the backup too.") var keepSessions = false

  func run() async throws {
    let gateway = try configuration.generation().gateway
    let keys = KeyRing(try KeySource(gateway.key).read())
    let store = try StoreCopier.named(nil, configuration)
    let restored = try StoreCopier.answering {
      try store.restore(from: file, by: keys, replaces: replace, keepsSessions: keepSessions) { table in
        print(
          "\(table.name.padding(toLength: 16, withPad: " ", startingAt: 0))\(table.rows) rows, SHA-256 \(table.digest)")
      }
    }
    let header = restored.header
    let migrated =
      header.schema < StoreCopier.knownVersion
      ? ", migrated from schema \(header.schema) to \(StoreCopier.knownVersion)" : ""
    print("\(store.name) is restored to its state of \(Timestamp(milliseconds: header.createdAt).text)\(migrated).")
    if !keepSessions { print("Sessions and flows were left out: all users must sign in again.") }
  }
}

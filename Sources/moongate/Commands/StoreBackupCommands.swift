import ArgumentParser
import Foundation
import MoongateCore
import MoongateStore

/// `moongate store backup`.
struct BackUpStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Write one state of the store into a file, while gateways serve.",
    discussion: """
      The file is for its owner alone (mode 0600) and is the same whichever database the store is in. It is authenticated by the current master key, so \
      that a file that was changed is refused. It is not encrypted, and holds no master key: keep a copy of that apart from it.
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
    commandName: "restore", abstract: "Put a backup into the store of gateway.lua, with all gateways stopped.",
    discussion: """
      The file is checked as a whole before anything is written, and what fails half-way leaves the store as it was. The store must be empty unless you \
      say --replace. Sessions and flows stay out unless you say --keep-sessions: one that ended since the backup would be alive again. The database need not \
      be the one that the backup was made from: SQLite and PostgreSQL take the same file.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The file that `moongate store backup` wrote.") var file: String
  @Flag(help: "Delete what the store holds.") var replace = false
  @Flag(help: "Let the backup's sessions and flows live again.") var keepSessions = false

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
      ? ", brought from schema \(header.schema) to \(StoreCopier.knownVersion)" : ""
    print("\(store.name) is as it was at \(Timestamp(milliseconds: header.createdAt).text)\(migrated).")
    if !keepSessions { print("Sessions and flows were left out: everybody signs in anew.") }
  }
}

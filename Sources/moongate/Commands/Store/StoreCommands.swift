import ArgumentParser
import Foundation
import MoongateCore
import MoongateProgram
import MoongateSDK
import MoongateStore

/// `moongate store`: checks, migrates and copies the database of a gateway.
struct StoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Migrate, check, back up, restore or copy the store.",
    discussion: """
      A store is written like in gateway.lua: sqlite:data/moongate.db, or postgres://user@host/database. Put a PostgreSQL password into \
      PGPASSWORD or ~/.pgpass, where process lists do not show it. Exit status: 0 on success, 1 if problems were found, 2 if the command could not run.
      """,
    subcommands: [MigrateStore.self, CheckStore.self, BackUpStore.self, RestoreStore.self, CopyStore.self])
}

/// `moongate store migrate`.
struct MigrateStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Migrate a store to the current schema, or create the store.",
    discussion:
      "A gateway does the same when it starts. Running gateways of an older version keep working.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The store. Default: the store of gateway.lua.") var address: String?
  @Flag(help: "Show what would be done, without doing it.") var dryRun = false

  func run() async throws {
    let store = try StoreCopier.named(address, configuration)
    try StoreCopier.answering {
      let found = try store.version()
      let known = StoreCopier.knownVersion
      if dryRun {
        guard found != known else { return print("\(store.name): the schema is already \(known).") }
        return print("\(store.name): the schema would be migrated from \(found ?? 0) to \(known).")
      }
      let before = try store.migrate()
      print(
        before == known
          ? "\(store.name): the schema is already \(known)."
          : "\(store.name): the schema was migrated from \(before) to \(known).")
    }
  }
}

/// `moongate store check`.
struct CheckStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check the integrity of a store: its files, its schema, and its invariants.",
    discussion: """
      Reads a consistent snapshot of the store, also while gateways run, and changes nothing. Prints one line per problem. If the store's schema \
      is older than this program's, only the files are checked.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The store. Default: the store of gateway.lua.") var address: String?

  func run() async throws {
    let store = try StoreCopier.named(address, configuration)
    let report = try StoreCopier.answering { try store.check() }
    print("\(store.name): schema \(report.version)")
    for count in report.counts {
      print("\(count.table.padding(toLength: 16, withPad: " ", startingAt: 0))\(count.rows)")
    }
    for finding in report.findings { print("found: \(finding)") }
    guard report.findings.isEmpty else { throw ExitCode(ExitStatus.found.rawValue) }
    print("No problems found.")
  }
}

/// `moongate store copy`.
struct CopyStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy", abstract: "Copy a store to an empty one, in the same or in another kind of database.",
    discussion: """
      Stop the gateways first. The command refuses to copy a store that a gateway uses, and fails if the source changes during the copy. \
      Every table of the copy is read back and compared by row count and SHA-256, and the source is read once more at the end. A failed copy \
      leaves the target empty. The copy belongs to the same master key.
      """)

  @Argument(help: "The source store.") var from: String
  @Argument(help: "The target store, which must be empty.") var to: String

  func run() async throws {
    let source = try StoreCopier.named(from)
    let target = try StoreCopier.named(to)
    try StoreCopier.answering {
      try source.copy(to: target) { table in
        print(
          "\(table.name.padding(toLength: 16, withPad: " ", startingAt: 0))\(table.rows) rows, SHA-256 \(table.digest) on both sides"
        )
      }
    }
    print("\(target.name) is a copy of \(source.name).")
  }
}

extension CopyRefusal {
  /// Errors that the operator can correct before trying again have status 1.
  fileprivate var status: ExitStatus {
    switch self {
    case .served, .written, .differs: .found
    case .nothingThere, .olderSchema, .notEmpty: .couldNotRun
    }
  }
}

extension StoreCopier {
  /// The store of the command line, or else of gateway.lua.
  /// - Throws: an error with exit status 2 if the address is invalid.
  static func named(_ address: String?, _ configuration: ConfigurationOption) throws -> StoreCopier {
    if let address { return try named(address) }
    return try opening(try configuration.generation().gateway.store)
  }

  fileprivate static func named(_ address: String) throws -> StoreCopier {
    if address.hasPrefix("sqlite:"), address.count > 7, address != "sqlite::memory:" {
      return try opening(.sqlite(path: String(address.dropFirst(7))))
    }
    if address.hasPrefix("postgres://") || address.hasPrefix("postgresql://") {
      return try opening(.postgres(url: address))
    }
    // The message does not repeat the text, which may be a password in the wrong place.
    throw StartProblem(
      "That is not a store. Write sqlite:data/moongate.db or postgres://user@host/database.", status: .couldNotRun)
  }

  private static func opening(_ location: StoreLocation) throws -> StoreCopier {
    do { return try StoreCopier(location) } catch { throw StartProblem("\(error)", status: .couldNotRun) }
  }

  /// Turns errors of the store into an error with exit status 2.
  static func answering<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as StoreRefusal {
      throw StartProblem(error.description, status: .couldNotRun)
    } catch let error as StoreFault {
      throw StartProblem("The store failed: \(error)", status: .couldNotRun)
    } catch let error as CopyRefusal {
      throw StartProblem(error.description, status: error.status)
    } catch let error as BackupRefusal {
      throw StartProblem(error.description, status: .couldNotRun)
    }
  }
}

import ArgumentParser
import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore

/// `moongate store`: the database behind a gateway, looked at and moved as a whole.
struct StoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Bring a store up to date, check it, back it up, restore it, or copy it into another database.",
    discussion: """
      A store is named as in gateway.lua: sqlite:data/moongate.db, or postgres://user@host/database. A password of PostgreSQL may come from \
      PGPASSWORD or ~/.pgpass, where no list of processes shows it. Exits with 0, with 1 where it found something, with 2 where it could not do it.
      """,
    subcommands: [MigrateStore.self, CheckStore.self, BackUpStore.self, RestoreStore.self, CopyStore.self])
}

/// `moongate store migrate`.
struct MigrateStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Bring a store's schema up to date; make the store where there is none.",
    discussion:
      "A gateway does the same when it starts. Gateways of an older program that serve from the store go on serving.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The store; without it, gateway.lua's.") var address: String?
  @Flag(help: "Only say what would be done.") var dryRun = false

  func run() async throws {
    let vault = try StoreCopier.named(address, configuration)
    try StoreCopier.answering {
      let found = try vault.version()
      let known = StoreCopier.knownVersion
      if dryRun {
        guard found != known else { return print("\(vault.name): the schema is \(known) already.") }
        return print("\(vault.name): the schema would go from \(found ?? 0) to \(known).")
      }
      let before = try vault.migrate()
      print(
        before == known
          ? "\(vault.name): the schema is \(known) already."
          : "\(vault.name): the schema went from \(before) to \(known).")
    }
  }
}

/// `moongate store check`.
struct CheckStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Look whether a store is whole: its files, its schema, and the rules that hold in every store.",
    discussion:
      "Changes nothing, and sees one state of the store, whatever a gateway writes meanwhile. Prints a line for each finding."
  )

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The store; without it, gateway.lua's.") var address: String?

  func run() async throws {
    let vault = try StoreCopier.named(address, configuration)
    let report = try StoreCopier.answering { try vault.check() }
    print("\(vault.name): schema \(report.version)")
    for count in report.counts {
      print("\(count.table.padding(toLength: 16, withPad: " ", startingAt: 0))\(count.rows)")
    }
    for finding in report.findings { print("found: \(finding)") }
    guard report.findings.isEmpty else { throw ExitCode(ExitStatus.found.rawValue) }
    print("All is as it should be.")
  }
}

/// `moongate store copy`.
struct CopyStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy", abstract: "Copy a store into an empty one, of the same or of the other database.",
    discussion: """
      Stop the gateways first: a store that one serves from is not copied, and where anything was written to it meanwhile nothing is, so that nothing \
      is lost silently. Every table is read back from the copy and compared by count and SHA-256, and the source is read once more at the end. It is all \
      or nothing: what fails half-way leaves the target empty. The copy answers to the same master key.
      """)

  @Argument(help: "The store to copy.") var from: String
  @Argument(help: "The empty one.") var to: String

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
  /// What an operator does something about and tries again is something found.
  fileprivate var status: ExitStatus {
    switch self {
    case .served, .written, .differs: .found
    case .nothingThere, .olderSchema, .notEmpty: .couldNotRun
    }
  }
}

extension StoreCopier {
  /// The store that the command line names, or else gateway.lua.
  /// - Throws: a sentence, with exit status 2, where it names none.
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
    // Not a piece of it is said again: it may be a password in the wrong place.
    throw StartProblem(
      "That is no store: write sqlite:data/moongate.db or postgres://user@host/database.", status: .couldNotRun)
  }

  private static func opening(_ location: StoreLocation) throws -> StoreCopier {
    do { return try StoreCopier(location) } catch { throw StartProblem("\(error)", status: .couldNotRun) }
  }

  /// Turns what keeps a store from being worked on into a sentence, with exit status 2.
  static func answering<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as StoreRefusal {
      throw StartProblem(error.description, status: .couldNotRun)
    } catch let error as StoreFault {
      throw StartProblem("The store could not do it: \(error)", status: .couldNotRun)
    } catch let error as CopyRefusal {
      throw StartProblem(error.description, status: error.status)
    } catch let error as BackupRefusal {
      throw StartProblem(error.description, status: .couldNotRun)
    }
  }
}

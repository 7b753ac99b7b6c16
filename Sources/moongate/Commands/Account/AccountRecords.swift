import ArgumentParser
import MoongateCore
import MoongateProgram
import MoongateSDK

/// Options that include provider records in an export or import and select the key that seals them.
struct RecordOptions: ParsableArguments {
  @Flag(help: "Include the provider records of each account, sealed with the gateway's master key.") var records = false
  @Option(
    name: .customLong("key"),
    help: "Seal the records with the key in this file instead of the master key: mode 600, at least 32 bytes.")
  var key: String?

  var isWanted: Bool { records || key != nil }

  /// The keys that seal and open records, or nil if records are not included.
  /// - Throws: an error with exit status 2 if the key file cannot be used.
  func keys(_ opened: OperatorStore) throws(StartProblem) -> KeyRing? {
    guard let key else { return records ? opened.keys : nil }
    do throws(StartProblem) {
      guard let bytes = try MasterKey.read(key) else {
        throw StartProblem("There is no key file \(key). Create it with `openssl rand -hex 32`.")
      }
      return KeyRing(try MasterKey.masters(bytes, from: "The key file \(key)"))
    } catch {
      throw StartProblem(error.sentence, status: .couldNotRun)
    }
  }
}

/// Seals the provider records of exported accounts and opens those of imported accounts.
struct AccountRecords {
  /// nil if accounts are exported or imported without records.
  private let keys: KeyRing?
  private let opened: OperatorStore

  init(_ keys: KeyRing?, _ opened: OperatorStore) {
    self.keys = keys
    self.opened = opened
  }

  /// Returns the account's sealed records and the name of the key, or nil if records are not included.
  func seal(of account: Account) async throws -> (sealed: String, key: String)? {
    guard let keys else { return nil }
    let owner = ExportedRecords.Owner(
      id: account.id, identifiers: account.identifiers.map { ($0.identifier, $0.verifiedAt != nil) },
      isLocked: account.isLocked)
    return (try await opened.administration.records(of: account).sealed(for: owner, by: keys), keys.currentName)
  }

  /// Opens the records of a line.
  ///
  /// Attack: an attacker who can edit the file removes the records of a line to import the account without its second
  /// factor. If records are included, every line must have them, sealed together with the account that they belong to.
  func open(
    _ line: (sealed: String?, key: String?), of account: ImportedAccount
  ) throws(AccountLine.Problems) -> ExportedRecords {
    guard let keys else {
      if line.sealed == nil, line.key == nil { return ExportedRecords(records: [:]) }
      throw AccountLine.Problems(sentences: [
        "it has records: use --records, or --key with the file of the key that sealed them"
      ])
    }
    guard let id = account.id, let sealed = line.sealed, let name = line.key else {
      throw AccountLine.Problems(sentences: [
        "it has no `records`: --records and --key need lines of `account export --records`"
      ])
    }
    guard account.records.isEmpty else {
      throw AccountLine.Problems(sentences: ["it has both records and hashes: remove the hashes"])
    }
    guard keys.names.contains(name) else {
      throw AccountLine.Problems(
        sentences: [
          "its records were sealed with the key \(name), which is not among \(keys.names.joined(separator: ", ")): use --key with its file"
        ])
    }
    let owner = ExportedRecords.Owner(
      id: id, identifiers: account.identifiers.map { ($0.identifier, $0.isVerified) }, isLocked: account.isLocked)
    guard let records = try? ExportedRecords(opening: sealed, for: owner, by: keys) else {
      throw AccountLine.Problems(sentences: [
        "its records cannot be opened: the line was changed after its export, or they belong to another account"
      ])
    }
    let registry = opened.registry
    let problems = records.problems(by: opened.keys) { name in
      opened.generation.policies[name] == nil ? nil : registry.descriptor(name)
    }
    guard problems.isEmpty else { throw AccountLine.Problems(sentences: problems) }
    return records
  }
}

import ArgumentParser
import MoongateCore
import MoongateSDK

/// Whether records of providers go along with accounts, and under which key.
struct RecordOptions: ParsableArguments {
  @Flag(help: "With what providers keep for each account, sealed with the gateway's master key.") var records = false
  @Option(
    name: .customLong("key"),
    help: "A file with the key that seals the records in place of the master key: mode 600, 32 bytes or more.")
  var key: String?

  var isWanted: Bool { records || key != nil }

  /// The keys that seal and open records; nil where records are not wanted.
  /// - Throws: a sentence, with exit status 2, where the key file cannot be used.
  func keys(_ opened: OperatorStore) throws(StartProblem) -> KeyRing? {
    guard let key else { return records ? opened.keys : nil }
    do throws(StartProblem) {
      guard let bytes = try MasterKey.read(key) else {
        throw StartProblem("There is no key file \(key): make one by `openssl rand -hex 32`.")
      }
      return KeyRing(try MasterKey.masters(bytes, from: "The key file \(key)"))
    } catch {
      throw StartProblem(error.sentence, status: .couldNotRun)
    }
  }
}

/// Seals what providers keep for exported accounts, and opens it for imported ones.
struct AccountRecords {
  /// nil: accounts go without.
  private let keys: KeyRing?
  private let opened: OperatorStore

  init(_ keys: KeyRing?, _ opened: OperatorStore) {
    self.keys = keys
    self.opened = opened
  }

  /// The account's records, sealed, with the name of the key; nil where they are not wanted.
  func seal(of account: Account) async throws -> (sealed: String, key: String)? {
    guard let keys else { return nil }
    let owner = ExportedRecords.Owner(
      id: account.id, identifiers: account.identifiers.map { ($0.identifier, $0.verifiedAt != nil) },
      isLocked: account.isLocked)
    return (try await opened.desk.records(of: account).sealed(for: owner, by: keys), keys.currentName)
  }

  /// The records of a line.
  ///
  /// Attack: a line from which the records were taken, so that its account comes in without its second factor. Where
  /// records are wanted each line must have them, sealed with all that the line says of whose they are.
  func open(
    _ line: (sealed: String?, key: String?), of account: ImportedAccount
  ) throws(AccountLine.Problems) -> [ProviderName: ProviderRecord] {
    guard let keys else {
      if line.sealed == nil, line.key == nil { return [:] }
      throw AccountLine.Problems(sentences: [
        "it has records: say --records, or --key with the file of the key that sealed them"
      ])
    }
    guard let id = account.id, let sealed = line.sealed, let name = line.key else {
      throw AccountLine.Problems(sentences: [
        "it has no `records`: only lines of `account export --records` can be taken in with --records or --key"
      ])
    }
    guard account.records.isEmpty else {
      throw AccountLine.Problems(sentences: ["it has both records and hashes: take out the hashes"])
    }
    guard keys.names.contains(name) else {
      throw AccountLine.Problems(
        sentences: [
          "its records were sealed with the key \(name), which is not among \(keys.names.joined(separator: ", ")): name its file by --key"
        ])
    }
    let owner = ExportedRecords.Owner(
      id: id, identifiers: account.identifiers.map { ($0.identifier, $0.isVerified) }, isLocked: account.isLocked)
    guard let records = try? ExportedRecords(opening: sealed, for: owner, by: keys) else {
      throw AccountLine.Problems(sentences: [
        "its records do not open: the line was changed after its export, or they are another account's"
      ])
    }
    let registry = opened.registry
    let problems = records.problems(by: opened.keys) { name in
      opened.generation.policies[name] == nil ? nil : registry.descriptor(name)
    }
    guard problems.isEmpty else { throw AccountLine.Problems(sentences: problems) }
    return records.records
  }
}

import MoongateSDK

/// Stores imports of accounts. An import takes many short transactions, so that sign-ins do not wait for it. Its
/// accounts are locked until it is complete. If it stops before, they are deleted.
///
/// An import holds the lease `AccountImport.lease` (`beginImport`). Each of its transactions requires the lease
/// (`Change.requireLease`), adds accounts (`Change.importAccount`), and the last one completes it
/// (`Change.completeImport`).
package protocol AccountImportStore: Sendable {
  /// Those of the names that accounts have, looked up together.
  func existing(_ names: ImportedNames) async throws(StoreFault) -> ImportedNames
  /// Begins an import by taking its lease for `AccountImport.length`. The fence is another one for each import.
  /// - Returns: nil if an import is under way, or if one that ended is not settled.
  func beginImport(at now: Timestamp) async throws(StoreFault) -> Lease?
  /// Settles the import of which nobody holds the lease any more, or that is complete: deletes its accounts or lets
  /// them be used, a bounded number per call.
  /// - Returns: whether there is more to settle.
  func settleImport(at now: Timestamp) async throws(StoreFault) -> Bool
}

/// The lease of imports.
package enum AccountImport {
  /// Its name.
  package static let lease = "account import"
  /// For how long it is held without being renewed. After that, the import counts as stopped.
  package static let length: Duration = .seconds(60)
}

/// What accounts to import have that only one account can have.
package struct ImportedNames: Sendable, Equatable {
  /// IDs of accounts.
  package var ids: Set<String> = []
  /// Verified identifiers.
  package var verified: Set<Identifier> = []
  /// Exclusive identifiers (`IdentifierKind.isExclusive`).
  package var exclusive: Set<Identifier> = []

  package init() {}
}

/// An account to import, in stored form.
package struct StoredImport: Sendable {
  /// A provider's record of the account.
  package struct Record: Sendable {
    package let provider: ProviderName
    package let sealed: [UInt8]
    /// The kind of imported hash that it holds; nil: none.
    package let importedHash: HashWork?
    /// Why the account must replace it; nil: it need not.
    package let dueChange: DueChange?

    package init(provider: ProviderName, sealed: [UInt8], importedHash: HashWork?, dueChange: DueChange?) {
      self.provider = provider
      self.sealed = sealed
      self.importedHash = importedHash
      self.dueChange = dueChange
    }
  }

  /// The account with its groups.
  package let account: Account
  package let records: [Record]

  package init(account: Account, records: [Record]) {
    self.account = account
    self.records = records
  }
}

import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Provider records of an account are exported to another gateway as one sealed value.
@Suite struct ExportedRecordsTests {
  private let keys: KeyRing
  private let phone = Identifier(kind: .phone, value: "+919999999999", display: "")

  init() throws { keys = try KeyRing(master: [UInt8](repeating: 7, count: 32)) }

  private let records = ExportedRecords(records: [
    "pin": ProviderRecord(bytes: [1, 2], version: 1), "totp": ProviderRecord(bytes: [3], version: 2),
  ])

  private func owner(
    _ id: String = "ac_1", _ identifiers: [(Identifier, isVerified: Bool)]? = nil, isLocked: Bool = false
  ) -> ExportedRecords.Owner {
    ExportedRecords.Owner(id: id, identifiers: identifiers ?? [(phone, true)], isLocked: isLocked)
  }

  @Test func sealedRecordsOpenOnlyForTheirOwner() throws {
    let sealed = try records.sealed(for: owner(), by: keys)
    #expect(try ExportedRecords(opening: sealed, for: owner(), by: keys) == records)
    let due = ExportedRecords(records: records.records, dueChanges: ["pin": .breached])
    #expect(try ExportedRecords(opening: due.sealed(for: owner(), by: keys), for: owner(), by: keys) == due)
    // Attack: the records of the victim are put on a line with the attacker's number; every other change of the line is
    // tried too.
    let stranger = Identifier(kind: .phone, value: "+918888888888", display: "")
    for other in [
      owner("ac_2"), owner("ac_1", [(stranger, true)]), owner("ac_1", [(phone, true), (stranger, true)]),
      owner("ac_1", []),
      owner("ac_1", [(phone, false)]), owner(isLocked: true),
    ] { #expect(throws: (any Error).self) { try ExportedRecords(opening: sealed, for: other, by: keys) } }
    let other = try KeyRing(master: [UInt8](repeating: 8, count: 32))
    #expect(throws: (any Error).self) { try ExportedRecords(opening: sealed, for: owner(), by: other) }
    for place in [0, sealed.count / 2, sealed.count - 1] {
      var text = Array(sealed.utf8)
      text[place] = text[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(throws: (any Error).self) {
        try ExportedRecords(opening: String(decoding: text, as: UTF8.self), for: owner(), by: keys)
      }
    }
    #expect(throws: (any Error).self) { try ExportedRecords(opening: "", for: owner(), by: keys) }
    // Attack: a sealed row of the store is passed off as an export.
    let row = Base64URL.encode(
      try ProviderRecord(bytes: Array("[]".utf8), version: 1).sealed(for: "pin ac_1", by: keys))
    #expect(throws: (any Error).self) { try ExportedRecords(opening: row, for: owner(), by: keys) }
  }

  @Test func unusableRecordsAreReported() throws {
    func descriptor(_ version: Int) -> ProviderDescriptor {
      ProviderDescriptor(
        name: "totp", beginFields: [], submitFields: [], settings: [], policy: PolicySource(file: "", text: ""),
        identifierKinds: [],
        recordVersion: version)
    }
    #expect(records.problems(by: keys) { _ in descriptor(2) } == [])
    #expect(
      records.problems(by: keys) { $0 == "pin" ? nil : descriptor(2) }
        == ["it has a record of `pin`, and gateway.lua configures no such provider: add it first"])
    #expect(
      records.problems(by: keys) { _ in descriptor(1) }
        == ["its record of `totp` has version 2, and this gateway reads versions up to 1: update it first"])
    let hash = try SecretHashing(keys: keys, random: SeededRandom(), cost: .cheap).hash([1])
    let hashed = ExportedRecords(records: ["pin": ProviderRecord(bytes: Array(hash.utf8), version: 1)])
    #expect(hashed.problems(by: keys) { _ in descriptor(1) } == [])
    let other = try KeyRing(master: [UInt8](repeating: 8, count: 32))
    #expect(
      hashed.problems(by: other) { _ in descriptor(1) }.first?.contains(
        "needs a master key that this gateway does not have") == true)
  }

  /// Every account that conflicts is found at once, also of a file that is only checked.
  @Test func everyConflictIsFound() async throws {
    let store = try SQLiteStore.memory()
    let bench = AccountAdministration(
      store: store, providers: .none, keys: keys, clock: ManualClock(), random: SeededRandom())
    func name(_ text: String) throws -> ImportedAccount.Name {
      .init(identifier: Identifier(try #require(UserName(text))), isVerified: false)
    }
    let asha = ImportedAccount(
      id: "ac_1", identifiers: [.init(identifier: phone, isVerified: true), try name("asha.rao")])
    #expect(try await bench.add([asha]).isEmpty)
    let lines = [
      ImportedAccount(id: "ac_1", identifiers: []),
      ImportedAccount(identifiers: [try name("ravi.rao")]),
      ImportedAccount(identifiers: [.init(identifier: phone, isVerified: true)]),
      ImportedAccount(identifiers: [.init(identifier: phone, isVerified: false)]),
      // Attack: a name that looks like an existing one, or like one of the same file.
      ImportedAccount(identifiers: [try name("AshA.Rao")]),
      ImportedAccount(identifiers: [try name("Ravi.Rao")]),
    ]
    #expect(try await bench.conflicts(with: lines) == [0, 2, 4, 5])
    #expect(try await bench.add(lines) == [0, 2, 4, 5])
    #expect(try await store.accounts(after: nil, limit: 10).map(\.id) == ["ac_1"], "nothing is stored")
    #expect(try await bench.conflicts(with: [lines[1], lines[3]]).isEmpty)
  }

  @Test func accountIsReadWithItsRecords() async throws {
    let store = try SQLiteStore.memory()
    let bench = AccountAdministration(
      store: store, providers: .none, keys: keys, clock: ManualClock(), random: SeededRandom())
    var line = ImportedAccount(id: "ac_1", identifiers: [.init(identifier: phone, isVerified: true)])
    line.records = records.records
    #expect(try await bench.add([line]).isEmpty)
    let account = try #require(try await store.account("ac_1"))
    #expect(account.credentials == ["pin", "totp"])
    #expect(try await bench.records(of: account) == records)
    // Attack: an import replaces the secret of an existing account, found by its id or by its number.
    line.records = ["pin": ProviderRecord(bytes: [9], version: 1)]
    #expect(try await bench.add([line]) == [0])
    line.id = "ac_2"
    #expect(try await bench.add([line]) == [0])
    #expect(try await bench.records(of: account) == records)
    // What the account had to replace at the other gateway, it must replace here.
    let other = Identifier(kind: .phone, value: "+918888888888", display: "")
    line = ImportedAccount(id: "ac_3", identifiers: [.init(identifier: other, isVerified: true)])
    (line.records, line.dueChanges) = (records.records, ["pin": .breached])
    #expect(try await bench.add([line]).isEmpty)
    let moved = try #require(try await store.account("ac_3"))
    #expect(moved.dueChanges == ["pin": .breached])
    let exported = try await bench.records(of: moved)
    #expect(exported.records == records.records && exported.dueChanges == moved.dueChanges)
  }
}

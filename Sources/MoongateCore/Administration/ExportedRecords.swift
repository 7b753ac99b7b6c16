import Crypto
import Foundation
import MoongateSDK

/// All records that providers store for one account, for export to another gateway: sealed in one piece, and bound to
/// the account as it was exported.
///
/// Attack: a line of an export with another identifier in it, with the records of another account, or with the record
/// of a second factor removed. None of them can be opened.
package struct ExportedRecords: Sendable, Equatable {
  package let records: [ProviderName: ProviderRecord]
  /// Why the account must replace some of them (`Account.dueChanges`).
  package let dueChanges: [ProviderName: DueChange]

  package init(records: [ProviderName: ProviderRecord], dueChanges: [ProviderName: DueChange] = [:]) {
    self.records = records
    self.dueChanges = dueChanges
  }

  /// The account that the records belong to, as the export describes it.
  package struct Owner: Sendable {
    fileprivate let digest: String

    /// - Parameter identifiers: each with whether it is verified.
    package init(id: String, identifiers: [(Identifier, isVerified: Bool)], isLocked: Bool) {
      let parts =
        [id, isLocked ? "locked" : "open"]
        + identifiers.flatMap { [$0.0.kind.rawValue, $0.0.value, $0.isVerified ? "verified" : "claimed"] }
      var bytes: [UInt8] = []
      for part in parts {
        // Each part is prefixed with its length, so that different accounts never give the same bytes.
        bytes += Array("\(part.utf8.count) ".utf8)
        bytes += Array(part.utf8)
      }
      digest = Base64URL.encode(SHA256.hash(data: bytes))
    }
  }

  private struct Entry: Codable {
    let provider: String
    let version: Int
    let record: Data
    let due: DueChange?
  }

  /// Seals the records.
  /// - Parameter keys: the gateway's own keys, or a ring with a key that the operator has chosen.
  package func sealed(for owner: Owner, by keys: KeyRing) throws -> String {
    let entries = records.sorted { $0.key < $1.key }.map {
      Entry(
        provider: $0.key.rawValue, version: $0.value.version, record: Data($0.value.bytes), due: dueChanges[$0.key])
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return Base64URL.encode(try keys.seal(Array(encoder.encode(entries)), for: Self.purpose(owner)))
  }

  /// Opens what `sealed` sealed.
  /// - Throws: if it was changed, belongs to another account, or was sealed with another key.
  package init(opening text: String, for owner: Owner, by keys: KeyRing) throws {
    guard let sealed = Base64URL.decode(text) else { throw KeyRingError.notOurs }
    let entries = try JSONDecoder().decode(
      [Entry].self, from: Data(try keys.open(Array(sealed), for: Self.purpose(owner))))
    var records: [ProviderName: ProviderRecord] = [:]
    var dueChanges: [ProviderName: DueChange] = [:]
    for entry in entries {
      guard let provider = ProviderName(rawValue: entry.provider), entry.version >= 1 else {
        throw KeyRingError.notOurs
      }
      records[provider] = ProviderRecord(bytes: Array(entry.record), version: entry.version)
      dueChanges[provider] = entry.due
    }
    self.init(records: records, dueChanges: dueChanges)
  }

  /// Why the records cannot be used here, one sentence each.
  /// - Parameters:
  ///   - keys: the gateway's own keys.
  ///   - descriptor: the descriptors of the providers that gateway.lua configures.
  package func problems(by keys: KeyRing, _ descriptor: (ProviderName) -> ProviderDescriptor?) -> [String] {
    records.sorted { $0.key < $1.key }.compactMap { provider, record in
      guard let known = descriptor(provider) else {
        return Self.unconfigured(provider)
      }
      guard record.version <= known.recordVersion else {
        return
          "its record of `\(provider)` has version \(record.version), and this gateway reads versions up to \(known.recordVersion): update it first"
      }
      guard keys.hasPeppers(of: record.bytes) else {
        return
          "the hash in its record of `\(provider)` needs a master key that this gateway does not have: give this gateway the key file, or "
          + "export without records and let people set new secrets"
      }
      return nil
    }
  }

  /// Why a record or a factor of a provider without a policy cannot be imported.
  package static func unconfigured(_ provider: ProviderName) -> String {
    "it has a record of `\(provider)`, and gateway.lua configures no such provider: add it first"
  }

  private static func purpose(_ owner: Owner) -> String { "account export \(owner.digest)" }
}

extension KeyRing {
  /// Whether the ring has every pepper that the hashes in a provider's record use.
  func hasPeppers(of record: [UInt8]) -> Bool {
    String(decoding: record, as: UTF8.self).matches(of: /keyid=([A-Za-z0-9_\-+\/]+)/).allSatisfy {
      peppered([], by: String($0.output.1)) != nil
    }
  }
}

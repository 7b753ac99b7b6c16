import Foundation
import MoongateSDK

/// The passkeys of an account. The core encrypts the record.
struct PasskeyRecord: Codable, Equatable {
  /// The maximum number of passkeys per account.
  static let most = 20

  var credentials: [Credential]

  /// - Throws: an error if the bytes are not a record.
  init(bytes: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) }

  init(_ credentials: [Credential]) { self.credentials = credentials }

  /// - Throws: an encoding error, which does not occur in practice.
  var bytes: [UInt8] {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      return Array(try encoder.encode(self))
    }
  }

  subscript(id: [UInt8]) -> Credential? { self[Base64URL.encode(id)] }

  /// - Parameter item: the credential id in base64url.
  subscript(item: String) -> Credential? { credentials.first { $0.id == item } }

  /// The record with an updated credential.
  func updating(_ credential: Credential) -> PasskeyRecord {
    PasskeyRecord(credentials.map { $0.id == credential.id ? credential : $0 })
  }
}

/// A passkey: the credential record of Web Authentication, Level 3, section 4, with a name and times.
struct Credential: Codable, Equatable {
  /// Base64url.
  let id: String
  /// The COSE_Key in base64url.
  let key: String
  var signCount: UInt32
  var name: String
  /// Milliseconds since the Unix epoch.
  let createdAt: Int64
  var usedAt: Int64
  /// The transports reported by the browser, as hints for later requests.
  let transports: [String]
  var isBackupEligible: Bool
  var isBackedUp: Bool
  /// Whether the user has ever been verified with it.
  let isUserVerified: Bool
  /// The authenticator model as a UUID; zeros if it is not disclosed.
  let aaguid: String
  /// For a passkey that was registered at another system and imported.
  var foreign: ForeignCredential?

  /// The name with the days of creation and last use.
  var line: String { "\(name) · \(Self.day(createdAt)) · \(Self.day(usedAt))" }

  /// The same for the account page.
  var item: HeldItem {
    HeldItem(
      id: id, name: name, details: ([AAGUID.make(aaguid)].compactMap(\.self).filter { $0 != name }) + [kind],
      addedAt: createdAt,
      usedAt: usedAt > createdAt ? usedAt : nil)
  }

  static let synced = "Synced to your devices"
  static let attached = "Security key"
  static let single = "On one device only"

  /// The kind of device, from its backup state and its transports.
  private var kind: String {
    if isBackedUp { return Self.synced }
    return !transports.contains("internal") && !Set(transports).isDisjoint(with: ["usb", "nfc", "ble", "smart-card"])
      ? Self.attached : Self.single
  }

  private static func day(_ time: Int64) -> String {
    // Prevents a line break inside a date.
    Date(timeIntervalSince1970: Double(time) / 1000).formatted(.iso8601.year().month().day()).replacing(
      "-", with: "-\u{2060}")
  }
}

/// What the import of a passkey does not tell. Its first assertion does, and later ones must agree.
struct ForeignCredential: Codable, Equatable {
  /// Whether the backup state of the credential is known.
  var isUsed = false
  /// The user handle of the other system, in base64url; nil if it is not known.
  var userHandle: String?
}

/// The state of a step between rounds. The core encrypts it and binds it to the flow and provider.
struct PasskeyState: Codable {
  /// The challenge of the shown ceremony, in base64url.
  var challenge: String?
  /// The expiry of the challenge, in milliseconds since the Unix epoch.
  var deadline: Int64?
  /// The purpose of the challenge. A challenge for `prove` cannot register a passkey.
  var purpose: String
  /// A new passkey that waits for its name.
  var made: Credential?
  /// The passkey to rename or remove after the verification, if it was chosen before.
  var item: String?
  /// Whether a passkey was verified and the user now chooses one.
  var isProved: Bool?

  init(purpose: String) { self.purpose = purpose }

  /// - Throws: an error if the bytes are not a state.
  init(bytes: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) }

  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
}

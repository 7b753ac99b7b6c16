import Foundation
import MoongateSDK

/// The passkeys of an account. The core seals it.
struct PasskeyRecord: Codable, Equatable {
  /// So many an account may have.
  static let most = 20

  var credentials: [Credential]

  /// - Throws: where the bytes are none.
  init(bytes: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) }

  init(_ credentials: [Credential]) { self.credentials = credentials }

  /// - Throws: never, as far as can be told of an encoder.
  var bytes: [UInt8] {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      return Array(try encoder.encode(self))
    }
  }

  subscript(id: [UInt8]) -> Credential? { self[Base64URL.encode(id)] }

  /// - Parameter item: an id in base64url.
  subscript(item: String) -> Credential? { credentials.first { $0.id == item } }

  /// The same with the credential in the place of the one with its id.
  func updating(_ credential: Credential) -> PasskeyRecord {
    PasskeyRecord(credentials.map { $0.id == credential.id ? credential : $0 })
  }
}

/// One passkey: the credential record of Web Authentication, Level 3, section 4, with a name and times for the person.
struct Credential: Codable, Equatable {
  /// Base64url.
  let id: String
  /// COSE_Key in base64url.
  let key: String
  var signCount: UInt32
  var name: String
  /// Milliseconds since the Unix epoch.
  let createdAt: Int64
  var usedAt: Int64
  /// Kinds of connection that the browser named, for the next request's hints.
  let transports: [String]
  let isBackupEligible: Bool
  var isBackedUp: Bool
  /// Whether the person has ever been verified with it.
  let isUserVerified: Bool
  /// The authenticator's model as a UUID; zeros where it does not tell.
  let aaguid: String

  /// For the person: its name and when it was made and used last.
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

  /// The kind of device, as far as it has told.
  private var kind: String {
    if isBackedUp { return Self.synced }
    return !transports.contains("internal") && !Set(transports).isDisjoint(with: ["usb", "nfc", "ble", "smart-card"])
      ? Self.attached : Self.single
  }

  private static func day(_ time: Int64) -> String {
    // A line does not end inside a date.
    Date(timeIntervalSince1970: Double(time) / 1000).formatted(.iso8601.year().month().day()).replacing(
      "-", with: "-\u{2060}")
  }
}

/// What the provider wants back while a step waits. The core seals it too, for this flow and provider.
struct PasskeyState: Codable {
  /// The challenge of the ceremony that is shown, in base64url.
  var challenge: String?
  /// Until when it is taken, in milliseconds since the Unix epoch.
  var deadline: Int64?
  /// What it was made for: a challenge to prove makes no passkey.
  var purpose: String
  /// A passkey that was made and waits for its name.
  var made: Credential?
  /// The passkey that is renamed or removed once a passkey is proved, where it was chosen before.
  var item: String?
  /// Whether the person has proved a passkey and chooses one now.
  var isProved: Bool?

  init(purpose: String) { self.purpose = purpose }

  /// - Throws: where the bytes are none.
  init(bytes: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(bytes)) }

  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
}

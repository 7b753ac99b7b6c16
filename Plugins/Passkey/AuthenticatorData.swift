/// What an authenticator says of itself and of a ceremony (Web Authentication, Level 3, section 6.1).
struct AuthenticatorData: Equatable {
  /// A credential that was made in the ceremony (section 6.5.2).
  struct Attested: Equatable {
    /// The authenticator's model: 16 bytes, zeros where it is not told.
    let aaguid: [UInt8]
    let id: [UInt8]
    /// COSE_Key, as the authenticator wrote it.
    let key: [UInt8]
  }

  struct Flags: OptionSet, Equatable {
    let rawValue: UInt8
    static let present = Flags(rawValue: 0x01)
    static let verified = Flags(rawValue: 0x04)
    static let backupEligible = Flags(rawValue: 0x08)
    static let backedUp = Flags(rawValue: 0x10)
    static let attested = Flags(rawValue: 0x40)
    static let extended = Flags(rawValue: 0x80)
  }

  let rpIDHash: [UInt8]
  let flags: Flags
  let signCount: UInt32
  let attested: Attested?

  /// - Returns: nil for bytes that are no authenticator data, or that go on after it.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 37 else { return nil }
    rpIDHash = Array(bytes[..<32])
    flags = Flags(rawValue: bytes[32])
    signCount = bytes[33..<37].reduce(0) { $0 << 8 | UInt32($1) }
    var at = 37
    if flags.contains(.attested) {
      guard bytes.count >= at + 18 else { return nil }
      let aaguid = Array(bytes[at..<at + 16])
      let length = Int(bytes[at + 16]) << 8 | Int(bytes[at + 17])
      at += 18
      guard bytes.count >= at + length else { return nil }
      let id = Array(bytes[at..<at + length])
      at += length
      var reader = CBORReader(bytes[at...])
      guard (try? reader.value()) != nil else { return nil }
      attested = Attested(aaguid: aaguid, id: id, key: Array(bytes[at..<reader.at]))
      at = reader.at
    } else {
      attested = nil
    }
    if flags.contains(.extended) {
      var reader = CBORReader(bytes[at...])
      guard case .map? = try? reader.value() else { return nil }
      at = reader.at
    }
    guard at == bytes.count else { return nil }
  }
}

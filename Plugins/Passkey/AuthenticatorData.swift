/// Authenticator data (Web Authentication, Level 3, section 6.1).
struct AuthenticatorData: Equatable {
  /// Attested credential data of a registration (section 6.5.2).
  struct Attested: Equatable {
    /// The model of the authenticator: 16 bytes, zeros if it is not disclosed.
    let aaguid: [UInt8]
    let id: [UInt8]
    /// The COSE_Key as encoded by the authenticator.
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

  /// - Returns: nil if the bytes are not authenticator data or have trailing bytes.
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

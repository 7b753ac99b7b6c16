import MoongateSDK

/// A CIDR block such as 10.0.0.0/8.
package struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
  /// 4 or 16 bytes. Bits beyond the prefix are zero.
  package let network: [UInt8]
  /// In bits.
  package let prefix: Int

  package init(network: [UInt8], prefix: Int) {
    self.network = network
    self.prefix = prefix
  }

  /// Parses `10.0.0.0/8`, or an address as a block of one. Bits beyond the prefix are set to zero.
  /// - Returns: nil if the text is not a valid block.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count <= 2, let bytes = IPAddressBytes.parseV4(parts[0].utf8) ?? IPAddressBytes.parseV6(parts[0].utf8)
    else { return nil }
    let width = bytes.count * 8
    // `Int` would accept a sign.
    guard parts.dropFirst().allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
      let prefix = parts.count == 1 ? width : Int(parts[1]), (0...width).contains(prefix)
    else { return nil }
    // Clients have IPv4 addresses even if the system maps them to IPv6 (`ClientAddress`), so a mapped block is one of
    // IPv4. Otherwise it would never match.
    if bytes.count == 16, prefix >= 96, bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xff, bytes[11] == 0xff {
      self.init(masking: Array(bytes[12...]), prefix: prefix - 96)
    } else {
      self.init(masking: bytes, prefix: prefix)
    }
  }

  private init(masking bytes: [UInt8], prefix: Int) {
    self.init(network: bytes.enumerated().map { ClientAddress.kept($1, at: $0, of: prefix) }, prefix: prefix)
  }

  /// Whether the block is larger than a private network, so that machines of others are in it: wider than /8 of IPv4,
  /// or than /32 of IPv6 outside of the unique local addresses (RFC 4193).
  package var isWide: Bool {
    let isUniqueLocal = network.count == 16 && prefix >= 7 && network[0] & 0xfe == 0xfc
    return prefix < (network.count == 4 ? 8 : 32) && !isUniqueLocal
  }

  /// The CIDR notation, `10.0.0.0/8`.
  package var description: String { "\(ClientAddress.text(network))/\(prefix)" }
}

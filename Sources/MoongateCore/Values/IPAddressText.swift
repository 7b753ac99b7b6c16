import MoongateSDK

/// Parses the text of an IP address into a client's address, as strictly as `IPAddressBytes`.
package enum IPAddressText {
  /// Parses an IPv4 or IPv6 address.
  package static func parse(_ text: some Collection<UInt8>) -> ClientAddress? {
    (IPAddressBytes.parseV4(text) ?? IPAddressBytes.parseV6(text)).flatMap(ClientAddress.init(bytes:))
  }
}

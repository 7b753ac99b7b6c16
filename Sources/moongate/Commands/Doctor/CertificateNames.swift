import MoongateCore
import MoongateSDK

/// The hosts that a certificate names: its subject alternative names (RFC 9525). Browsers ignore the common name.
struct CertificateNames: Equatable {
  /// DNS names in lower case. The first label may be `*`.
  let names: [String]
  /// IP addresses of 4 or 16 bytes.
  let addresses: [[UInt8]]

  init(names: [String], addresses: [[UInt8]] = []) {
    self.names = names
    self.addresses = addresses
  }

  /// The names, and the addresses as text.
  var texts: [String] { names + addresses.compactMap { ClientAddress(bytes: $0)?.description } }

  /// Whether a client accepts the certificate for a host. `*` stands for exactly one label.
  /// - Parameter host: a name or an IP address; an IPv6 address with or without brackets.
  func covers(_ host: String) -> Bool {
    let host = host.lowercased()
    let bare = IPAddressBytes.withoutBrackets(host)
    if let address = IPAddressBytes.parseV4(bare.utf8) ?? IPAddressBytes.parseV6(bare.utf8) {
      return addresses.contains(address)
    }
    let parts = host.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    return names.contains { $0 == host || parts.count == 2 && $0 == "*.\(parts[1])" }
  }
}

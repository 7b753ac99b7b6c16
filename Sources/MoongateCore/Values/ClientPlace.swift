/// Where a client address is, as far as the databases of `geo` tell.
///
/// Attack: an attacker chooses the country and network of an address by a proxy or a VPN, and a database is never
/// complete. A place can therefore be a reason to ask for more, but proves nothing about a user.
package struct ClientPlace: Sendable, Hashable {
  /// Two capital letters (ISO 3166-1 alpha-2).
  package var country: String?
  /// The number of the autonomous system that announces the address (RFC 1930).
  package var asn: Int?

  package init(country: String? = nil, asn: Int? = nil) {
    self.country = country
    self.asn = asn
  }
}

/// The databases of `geo`. They can change while the gateway runs.
package protocol ClientPlaces: Sendable {
  /// - Returns: an empty place for an address that no database has, such as a private one.
  func place(of address: ClientAddress) -> ClientPlace
}

import MoongateCore

/// The table `geo` of gateway.lua.
extension TableShape {
  static let geo = TableShape(
    name: "Geo",
    summary:
      "Databases of client addresses in MaxMind's format (.mmdb), for f.client.country, f.client.asn, limits and events.",
    entries: [
      .optional("database", "string", "a file with the countries of addresses, such as \"GeoLite2-Country.mmdb\""),
      .optional(
        "asn", "string", "a file with the autonomous systems of addresses, such as \"GeoLite2-ASN.mmdb\""),
    ])
}

import MoongateCore

/// Finds limits that count by something that no database of `geo` tells, so that they would never apply.
struct GeoChecks {
  /// Nil without `geo`.
  let geo: GeoSettings?
  let problems: Problems

  func check(_ policies: some Sequence<ProviderPolicy>) {
    for limit in policies.flatMap(\.limits) {
      guard let missing = Self.missing(for: limit.key, in: geo) else { continue }
      problems.add(
        limit.location, "limits.\(limit.name).per",
        "gateway.lua has no \(missing), so this limit never applies: add geo = { … }, or count by something else")
    }
  }

  /// The setting without which a function that reads the fact gets nil only; nil if it is there.
  static func missing(for fact: [String], in geo: GeoSettings?) -> String? {
    switch fact {
    case ["client", "country"]: missing(for: .clientCountry, in: geo)
    case ["client", "asn"]: missing(for: .asn, in: geo)
    default: nil
    }
  }

  private static func missing(for key: LimitKey, in geo: GeoSettings?) -> String? {
    switch key {
    case .clientCountry: geo?.countries == nil ? "geo.database" : nil
    case .asn: geo?.systems == nil ? "geo.asn" : nil
    default: nil
    }
  }
}

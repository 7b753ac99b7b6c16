/// A button that leads to another site.
struct SiteButton: Decodable {
  let provider: String
  let label: String
  /// SVG, only for built-in providers.
  let icon: String?
  /// Whether this device has signed in by it last.
  var isLast = false
}

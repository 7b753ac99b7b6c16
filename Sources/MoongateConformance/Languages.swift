import Foundation

/// The existing languages, by their codes (ISO 639).
enum Languages {
  private static let codes = Set(Locale.LanguageCode.isoLanguageCodes.map { $0.identifier.lowercased() })

  /// - Parameter tag: for example `hi` or `pt-BR`.
  static func isKnown(_ tag: String) -> Bool {
    guard let language = tag.split(separator: "-").first else { return false }
    return codes.isEmpty || codes.contains(language.lowercased())
  }
}

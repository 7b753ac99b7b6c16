/// The languages that come with the program, each a file of `Templates/`.
///
/// A new one is that file, `LANGUAGE.words`, and its line here; each provider has a file of the same name in its
/// `words/`. Tests say what is missing.
enum ShippedWords {
  /// English first, which gives what another language leaves out.
  static let files: [(tag: String, bytes: [UInt8])] = [
    ("en", PackageResources.en_words), ("hi", PackageResources.hi_words), ("ar", PackageResources.ar_words),
    ("bn", PackageResources.bn_words),
    ("de", PackageResources.de_words), ("es", PackageResources.es_words), ("fr", PackageResources.fr_words),
    ("pt", PackageResources.pt_words),
    ("ta", PackageResources.ta_words), ("te", PackageResources.te_words),
  ]

  /// Those that are offered where gateway.lua says nothing.
  static let offered = ["en", "hi"]

  static func text(of tag: String) -> String? {
    files.first { $0.tag == tag }.map { String(decoding: $0.bytes, as: UTF8.self) }
  }
}

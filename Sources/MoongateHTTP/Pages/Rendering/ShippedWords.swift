/// The built-in languages, each in a file of `Templates/`.
///
/// To add one, add its file `LANGUAGE.words` and its line here; each provider needs a file of the same name in its
/// `words/`. Tests report missing texts. Drafts of other languages are in `Documentation/languages`.
enum ShippedWords {
  /// English is the first. It provides the texts that another language lacks.
  static let files: [(tag: String, bytes: [UInt8])] = [
    ("en", PackageResources.en_words), ("hi", PackageResources.hi_words),
  ]

  static func text(of tag: String) -> String? {
    files.first { $0.tag == tag }.map { String(decoding: $0.bytes, as: UTF8.self) }
  }
}

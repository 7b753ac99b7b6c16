import MoongateCore
import MoongateSDK

/// A text of the hosted pages and messages, for an operator who wants to change it.
package struct PageText: Sendable, Equatable {
  /// The left side of its line in `pages/LANGUAGE.words`: its name, or the English sentence.
  package let name: String
  /// The shipped English text.
  package let english: String
  /// The text that users read in the language.
  package let text: String
  /// Whether its line stands below `[sentences]`.
  package let isSentence: Bool
  /// The provider that ships it; nil for a text of the pages themselves.
  package let provider: ProviderName?
  /// The line of the folder that sets it; nil for a shipped text.
  package let source: SourceLocation?
}

/// All texts in one language, from the shipped files and those of a folder.
package struct PageTextList: Sendable {
  /// A text with the line of the folder that sets it.
  private struct Said {
    let text: String
    let source: SourceLocation?
  }

  private let english: Lines
  private let shipped: Lines
  private let own: Lines

  /// The lines of one file.
  private struct Lines: Sendable {
    private(set) var texts: [(name: String, said: String, line: Int)] = []
    private(set) var sentences: [(name: String, said: String, line: Int)] = []
    let path: String?

    init(_ text: String, path: String? = nil) {
      self.path = path
      for (number, line) in WordsFile.lines(of: text) {
        switch line {
        case .text(let name, let said): texts.append((name, said, number))
        case .sentence(let name, let said): sentences.append((name, said, number))
        case .malformed: break
        }
      }
    }

    /// The last line of the name counts.
    func text(_ name: String) -> Said? { said(texts.last { $0.name == name }) }
    func sentence(_ name: String) -> Said? { said(sentences.last { $0.name == name }) }

    private func said(_ found: (name: String, said: String, line: Int)?) -> Said? {
      found.map { found in
        Said(text: found.said, source: path.map { SourceLocation(file: $0, line: found.line) })
      }
    }
  }

  /// The tags of the languages that have texts.
  /// - Parameter files: the files of the folder's `pages/`.
  package static func languages(_ files: [PageFile]) -> [String] {
    let added = files.map(\.name).filter { $0.hasSuffix(".words") }.map { String($0.dropLast(6)) }
    return ShippedWords.files.map(\.tag) + added.filter { ShippedWords.text(of: $0) == nil }
  }

  /// - Parameters:
  ///   - tag: the language, one of `languages`.
  ///   - files: the files of the folder's `pages/`.
  package init(in tag: String, _ files: [PageFile]) {
    let file = files.first { $0.name == "\(tag).words" }
    english = Lines(ShippedWords.text(of: "en") ?? "")
    shipped = Lines(ShippedWords.text(of: tag) ?? "")
    own = Lines(file.map { String(decoding: $0.bytes, as: UTF8.self) } ?? "", path: file?.path)
  }

  /// The texts of the pages, in the order of the shipped file.
  package var pages: [PageText] {
    let names = english.texts.map(\.name)
    let further = own.texts.map(\.name).filter { !names.contains($0) }
    return (names + further).map { name in
      let original = english.text(name)?.text ?? ""
      let said = own.text(name) ?? shipped.text(name)
      return PageText(
        name: name, english: original, text: said?.text ?? original, isSentence: false, provider: nil,
        source: said?.source)
    }
  }

  /// The sentences of refusals and messages.
  package var sentences: [PageText] {
    // The shipped English file has no sentences: they are in the sources. Every translation has all of them.
    let names = Lines(ShippedWords.text(of: "hi") ?? "").sentences.map(\.name)
    let further = own.sentences.map(\.name).filter { !names.contains($0) }
    return (names + further).map { sentence($0, of: nil, translations: [:]) }
  }

  /// The texts that a provider ships.
  /// - Parameter tag: the language.
  package func texts(of descriptor: ProviderDescriptor, in tag: String) -> [PageText] {
    guard let words = descriptor.words else { return [] }
    let translations = words.translations(in: tag)
    let notices = words.notices.sorted { $0.key.rawValue < $1.key.rawValue }.flatMap {
      [$0.value.subject, $0.value.event]
    }
    let declared =
      [words.title, words.name, words.instruction].compactMap(\.self)
      + words.labels.sorted { $0.key < $1.key }.map(\.value)
      + words.links.sorted { $0.key.rawValue < $1.key.rawValue }.map(\.value)
      + words.page.sorted { $0.key < $1.key }.map(\.value) + notices + descriptor.outcomes.map(\.sentence)
    let translated = Set(words.translations.values.flatMap(\.keys)).sorted()
    var seen: Set<String> = [""]
    return (declared + translated).filter { seen.insert($0).inserted }.map {
      sentence($0, of: descriptor.name, translations: translations)
    }
  }

  private func sentence(_ name: String, of provider: ProviderName?, translations: [String: String]) -> PageText {
    let said = own.sentence(name) ?? shipped.sentence(name)
    return PageText(
      name: name, english: name, text: said?.text ?? translations[name] ?? name, isSentence: true, provider: provider,
      source: said?.source)
  }
}

import ArgumentParser
import MoongateCore
import MoongateHTTP
import MoongateProgram
import MoongateSDK

/// `moongate pages`: the texts of the hosted pages.
struct PagesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pages", abstract: "List the texts of the hosted pages.", subcommands: [PageWords.self])
}

/// `moongate pages words`: lists the texts that an operator can change.
struct PageWords: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "words", abstract: "List the names and texts of the hosted pages, messages and refusals.",
    discussion: """
      The output has the form of a file pages/LANGUAGE.words. To change a text, copy its line into that file, below [sentences] if it stands there, and \
      change the right side. A comment above a line names the file and line of your folder that sets it already. \
      Exit status: 1 if no text matches.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "List only texts that contain this, in any case: a name, or words that you see on a page.")
  var search: String?
  @Option(help: "The language, such as hi.") var language = "en"
  @Option(help: "List only the texts that this provider ships, such as pin.") var provider: String?
  @Flag(help: "Print JSON.") var json = false

  /// A text in the JSON output.
  private struct Entry: Encodable {
    let name: String
    let english: String
    let text: String
    let section: String?
    let provider: String?
    let source: String?
  }

  func run() async throws {
    let generation = try configuration.generation()
    let languages = PageTextList.languages(generation.pages)
    guard languages.contains(language) else {
      throw StartProblem(
        "There are no texts in \(language). Available: \(languages.joined(separator: ", ")). A file pages/\(language).words adds the language.",
        status: .couldNotRun)
    }
    let texts = try texts(generation).filter(matches)
    if json {
      let entries = texts.map {
        Entry(
          name: $0.name, english: $0.english, text: $0.text, section: $0.isSentence ? "sentences" : nil,
          provider: $0.provider?.rawValue, source: $0.source?.description)
      }
      print(try ToolJSON.text(entries))
    } else {
      for line in Self.lines(texts) { print(line) }
    }
    if texts.isEmpty { throw StartProblem("No text matches\(search.map { " `\($0)`" } ?? "").") }
  }

  private func texts(_ generation: any PolicyGeneration) throws -> [PageText] {
    let list = PageTextList(in: language, generation.pages)
    let configured = try (generation.registry ?? Providers.registry()).all.map(\.descriptor).filter {
      generation.policies[$0.name] != nil
    }
    guard let provider else {
      let shipped = configured.flatMap { list.texts(of: $0, in: language) }
      let names = Set(shipped.map(\.name))
      return list.pages + list.sentences.filter { !names.contains($0.name) } + shipped
    }
    guard let descriptor = configured.first(where: { $0.name.rawValue == provider }) else {
      throw StartProblem(
        "gateway.lua configures no provider \(provider). Available: \(configured.map(\.name.rawValue).joined(separator: ", ")).",
        status: .couldNotRun)
    }
    return list.texts(of: descriptor, in: language)
  }

  private func matches(_ text: PageText) -> Bool {
    guard let search = search?.lowercased() else { return true }
    return [text.name, text.english, text.text].contains { $0.lowercased().contains(search) }
  }

  /// The texts in the form of a words file.
  private static func lines(_ texts: [PageText]) -> [String] {
    var lines: [String] = []
    var isInSentences = false
    var provider: ProviderName?
    for text in texts {
      if text.isSentence, !isInSentences {
        lines.append("[sentences]")
        isInSentences = true
      }
      if text.provider != provider {
        provider = text.provider
        if let provider { lines.append("# \(provider)") }
      }
      if let source = text.source { lines.append("# set by \(source)") }
      lines.append("\(text.name) = \(text.text)")
    }
    return lines
  }
}

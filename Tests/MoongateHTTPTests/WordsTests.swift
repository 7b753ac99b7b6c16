import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateHTTP

/// The shipped languages and the drafts of `Documentation/languages` are complete.
@Suite struct WordsTests {
  private let languages = PageSet(Self.drafts, brand: Brand()).languages

  private func language(_ tag: String) throws -> Words { try #require(languages.first { $0.tag == tag }) }

  @Test("an eight-digit code is an 8-digit code", arguments: 4...19)
  func lengths(_ length: Int) throws {
    let article = [8, 11, 18].contains(length) ? "an" : "a"
    #expect(try language("en").text("sent_digits", length: length) == "We've sent \(article) \(length)-digit code to")
    #expect(
      try language("en").text("sent_characters", length: length) == "We've sent \(article) \(length)-character code to")
    #expect(try language("hi").text("sent_digits", length: length) == "हमने \(length) अंकों का कोड यहाँ भेजा है")
    #expect(try language("hi").text("sent_characters", length: length) == "हमने \(length) अक्षरों का कोड यहाँ भेजा है")
  }

  /// A custom language with a general form of a sentence does not fall back to the English forms for particular
  /// numbers.
  @Test func formsForANumberDoNotFallBackToEnglish() {
    let own = PageFile(
      name: "nl.words", bytes: Array("sent_digits = Un code à {length} chiffres\nsent_digits_9 = Neuf\n".utf8))
    let dutch = PageSet([own], brand: Brand()).languages[2]
    #expect(
      [7, 8, 9].map { dutch.text("sent_digits", length: $0) } == [
        "Un code à 7 chiffres", "Un code à 8 chiffres", "Neuf",
      ])
    #expect(
      dutch.text("sent_characters", length: 8) == "We've sent an 8-character code to",
      "what is left out is English, rightly said")
  }

  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  private static let templates = root.appendingPathComponent("Sources/MoongateHTTP/Pages/Templates")

  /// The drafts, as files of a folder's `pages/`.
  private static let drafts: [PageFile] = ((try? files(in: "Documentation/languages")) ?? []).map { file in
    PageFile(name: file.lastPathComponent, bytes: (try? Data(contentsOf: file)).map(Array.init) ?? [])
  }

  /// The languages except English.
  private static let others = ShippedWords.files.map(\.tag).filter { $0 != "en" } + drafts.map(tag)

  private static func tag(_ file: PageFile) -> String { String(file.name.dropLast(6)) }

  /// The files of words in a folder.
  private static func files(in folder: String) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(
      at: root.appendingPathComponent(folder), includingPropertiesForKeys: nil
    ).filter { $0.pathExtension == "words" }.sorted { $0.path < $1.path }
  }

  /// The texts of the file alone, without the English fallback.
  private func own(_ tag: String) throws -> Words {
    let draft = Self.drafts.first { Self.tag($0) == tag }.map { String(decoding: $0.bytes, as: UTF8.self) }
    let text = try #require(ShippedWords.text(of: tag) ?? draft)
    return Words(tag: tag, base: nil, text, known: nil) { _, _ in }
  }

  @Test func draftsSaySoAndAreAccepted() {
    #expect(Self.drafts.map(Self.tag) == ["ar", "bn", "de", "es", "fr", "pt", "ta", "te"])
    for draft in Self.drafts {
      let text = String(decoding: draft.bytes, as: UTF8.self)
      #expect(text.hasPrefix("# DRAFT.") && text.contains("No native speaker has reviewed them"), "\(draft.name)")
      #expect(text.contains("add \"\(Self.tag(draft))\" to `languages`"), "\(draft.name)")
    }
    #expect(PageSet(Self.drafts, brand: Brand()).problems == [])
  }

  @Test func everyFileOfWordsIsShipped() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: Self.templates.path).filter {
      $0.hasSuffix(".words")
    }
    #expect(
      Set(files.map { String($0.dropLast(6)) }) == Set(ShippedWords.files.map(\.tag)),
      "ShippedWords.files lists what lies in Templates/")
  }

  @Test("every name is in the language", arguments: others) func everyNameIsThere(_ tag: String) throws {
    let english = try own("en").texts
    let words = try own(tag)
    let plural = PluralRule(of: tag)
    var expected: Set<String> = []
    for name in english.keys {
      if name.wholeMatch(of: /.+_\d+/) != nil { continue }
      let stem = name.wholeMatch(of: /(.+)_(one|other)/).map { String($0.1) }
      if let stem, english["\(stem)_one"] != nil, english["\(stem)_other"] != nil {
        expected.formUnion(plural.categories.map { "\(stem)_\($0.rawValue)" })
      } else {
        expected.insert(name)
      }
    }
    #expect(expected.subtracting(words.texts.keys).sorted() == [], "\(tag).words lacks these names")
    #expect(
      Set(words.texts.keys).subtracting(expected).sorted() == [], "\(tag).words has names that the pages do not know")
    // Both texts have the same placeholders. A form for one number may write the number as a word.
    let braces = { (text: String) in Set(text.matches(of: /\{\w+\}/).map { String($0.0) }) }
    for (name, text) in words.texts {
      guard let said = english[name] else { continue }
      let isPlural = name.wholeMatch(of: /.+_(zero|one|two|few|many|other)/) != nil
      #expect(
        braces(text) == braces(said) || isPlural && braces(text).isSubset(of: braces(said)), "\(tag).words: \(name)")
    }
    for (said, text) in words.sentences { #expect(braces(text) == braces(said), "\(tag).words: \(said)") }
  }

  /// A draft also has the words of all providers, which have a file of their own for a shipped language.
  @Test("a draft has the sentences of Hindi", arguments: drafts.map(tag)) func everySentenceIsThere(_ tag: String)
    throws
  {
    var expected = Set(try own("hi").sentences.keys)
    let plugins = try FileManager.default.contentsOfDirectory(atPath: Self.root.appendingPathComponent("Plugins").path)
    let files = try plugins.filter { !$0.contains(".") }.flatMap { try Self.files(in: "Plugins/\($0)/words") }
    #expect(files.count >= 8)
    for file in files { expected.formUnion(StepWords.translations(in: Array(try Data(contentsOf: file))).keys) }
    let found = Set(try own(tag).sentences.keys)
    #expect(expected.subtracting(found).sorted() == [], "\(tag).words lacks these below [sentences]")
    #expect(found.subtracting(expected).sorted() == [], "\(tag).words has sentences that no page says")
  }

  @Test("every refusal is in every language", arguments: RefusalCode.reserved.sorted())
  func refusals(_ name: String) throws {
    let code = try #require(RefusalCode(reserved: name))
    for tag in Self.others {
      let words = try own(tag)
      for said in [code.title, code.sentence] { #expect(words.translated(said) != said, "\(tag).words lacks \(said)") }
      let late = Refusal(code, decision: DecisionID(text: "dc_x"), retryAfter: .seconds(90))
      #expect(words.sentence(of: late) != late.sentence, "\(tag).words lacks \(late.sentence)")
    }
  }

  @Test("every reason of an invitation is in every language", arguments: InvitationProblem.allCases)
  func invitations(_ problem: InvitationProblem) throws {
    for tag in Self.others {
      let words = try own(tag)
      #expect(words.translated(problem.sentence) != problem.sentence, "\(tag).words lacks \(problem.sentence)")
    }
  }

  @Test("every notice is in every language", arguments: others) func notices(_ tag: String) throws {
    let (words, english) = (try own(tag), try own("en"))
    let factor = FactorNotice(subject: "Passcode set", event: "A passcode was set for your account")
    let notices: [Notice] = [
      .newDevice(userAgent: "Mozilla/5.0 (Linux; Android 15) Chrome/140", at: Timestamp(milliseconds: 0)),
      .locked(for: .seconds(900)),
      .locked(for: nil),
      .emailChanged, .phoneAdded, .phoneChanged, .siteConnected("X"), .siteDisconnected("X"), .deviceRemoved,
      .exposed,
      .factorSet("X"),
      .factorChanged("X"), .factorRemoved("X"), .factor(factor),
    ]
    for notice in notices {
      for channel in [MessageChannel.mail, .sms] {
        let text = notice.text(service: "Example", by: channel, in: words)
        let english = notice.text(service: "Example", by: channel, in: english)
        for part in english.split(whereSeparator: { ".\n:".contains($0) })
        where part.contains(/[a-z]{3}/) && part.contains(" ") {
          if case .factor = notice, part.contains("passcode") { continue }
          if part.contains("Chrome") { continue }
          #expect(!text.contains(part), "\(tag).words lacks \(part)")
        }
        #expect(!text.contains("{"))
      }
      if case .factor = notice { continue }
      #expect(
        notice.subject(service: "Example", in: words) != notice.subject(service: "Example", in: english), "\(tag)")
    }
  }

  @Test("the message with an invitation is in every language", arguments: others)
  func invitations(_ tag: String) throws {
    let message = InvitationMessage(
      service: "Example", recipient: "asha@example.com", link: "https://a.example/x",
      expiresAt: Timestamp(milliseconds: 0))
    let (words, english) = (try own(tag), try own("en"))
    #expect(message.subject(in: words) != message.subject(in: english))
    let sentences = [
      "You are invited to create an account", "can use this link, once", "If you do not expect this invitation",
    ]
    for (channel, said) in [(MessageChannel.mail, sentences), (.sms, [sentences[0]])] {
      let (text, source) = (message.text(by: channel, in: words), message.text(by: channel, in: english))
      #expect(sentences.filter { source.contains($0) } == said)
      for sentence in said { #expect(!text.contains(sentence), "\(tag).words lacks \(sentence)") }
      #expect(!text.contains("{") && text.contains("https://a.example/x"))
    }
  }

  @Test(
    "plural forms by number",
    arguments: [
      ("en", [0, 1, 2, 11, 100], "other one other other other"), ("hi", [0, 1, 2], "one one other"),
      ("fr", [0, 1, 2], "one one other"),
      ("pt", [0, 1, 2], "one one other"), ("pt-PT", [0, 1], "other one"), ("pt-BR", [0], "one"),
      ("ta", [0, 1, 5], "other one other"),
      (
        "ar", [0, 1, 2, 3, 10, 11, 26, 99, 100, 102, 103, 111, 1000],
        "zero one two few few many many many other other few many other"
      ),
      ("ru", [1, 2, 5, 11, 12, 21, 22, 25, 111, 121], "one few many many many one few many many one"),
      ("pl", [1, 2, 5, 12, 21, 22, 112], "one few many many many few many"),
      ("cs", [1, 2, 4, 5, 22], "one few few other other"),
      ("sl", [1, 2, 3, 5, 101, 102], "one two few other one two"),
      ("ro", [0, 1, 2, 19, 20, 101], "few one few few other few"),
      ("lt", [1, 2, 10, 11, 21, 22], "one few other other one few"),
      ("lv", [0, 1, 2, 11, 21], "zero one other zero one"),
      ("he", [1, 2, 3], "one two other"), ("cy", [0, 1, 2, 3, 6, 7], "zero one two few many other"),
      ("ga", [1, 2, 3, 7, 11], "one two few many other"),
      ("ja", [0, 1, 2], "other other other"), ("sr", [1, 3, 5, 21], "one few other one"),
      ("xx", [0, 1, 2], "other one other"),
    ])
  func plurals(_ tag: String, _ numbers: [Int], _ categories: String) {
    let rule = PluralRule(of: tag)
    let found = numbers.map { rule.category(of: $0) }
    #expect(found.map(\.rawValue).joined(separator: " ") == categories)
    #expect(Set(found).isSubset(of: rule.categories))
  }

  /// Attack: a service or provider whose name is a placeholder of the text that it stands in.
  @Test func placeholdersInValuesStay() throws {
    let said = try language("en").text("device_on", ["browser": "{system}", "system": "{browser}"])
    #expect(said == "{system} on {browser}")
  }

  @Test func arabicHasSixForms() throws {
    let arabic = try language("ar")
    #expect(arabic.isRightToLeft)
    let minutes = [60, 120, 180, 660].map { arabic.wait(.seconds($0)) }
    #expect(minutes == ["دقيقة واحدة", "دقيقتين", "3 دقائق", "11 دقيقة"])
    #expect(
      [1, 2, 3].map { arabic.count($0, "tries") } == ["بقيت محاولة واحدة.", "بقيت محاولتان.", "بقيت 3 محاولات."])
  }

  /// A custom file from before there were more than two plural forms.
  @Test func formerNameOfTheGeneralFormIsAccepted() {
    let own = PageFile(name: "nl.words", bytes: Array("minutes_one = {n} minuut\nminutes_many = {n} minuten\n".utf8))
    let set = PageSet([own], brand: Brand())
    #expect(set.problems == [])
    #expect([60, 120].map { set.languages[2].wait(.seconds($0)) } == ["1 minuut", "2 minuten"])
  }

  @Test func missingPluralFormUsesTheGeneralForm() {
    let own = PageFile(name: "pl.words", bytes: Array("minutes_few = {n} minuty\nminutes_other = {n} minut\n".utf8))
    let set = PageSet([own], brand: Brand())
    #expect(set.problems == [])
    #expect(
      [60, 120, 300].map { set.languages[2].wait(.seconds($0)) } == ["1 minut", "2 minuty", "5 minut"],
      "and never English")
    let wrong = PageFile(name: "pl.words", bytes: Array("minutes_two = x\n".utf8))
    #expect(PageSet([wrong], brand: Brand()).problems.count == 1, "Polish has no dual")
  }

  // MARK: Offered languages

  @Test func operatorChoosesTheOfferedLanguages() {
    let own = PageFile(name: "nl.words", bytes: Array("language = Nederlands\n".utf8))
    func tags(_ offered: [String], _ files: [PageFile] = []) -> [String] {
      PageSet(files, brand: Brand(), languages: offered).languages.map(\.tag)
    }
    #expect(tags([]) == ["en", "hi"] && tags([], [own]) == ["en", "hi", "nl"])
    #expect(tags(["hi", "en"]) == ["hi", "en"] && tags(["nl", "hi"], [own]) == ["nl", "hi"])
    #expect(tags(["xx"]) == ["en"], "English is the fallback")
    let hindi = PageFile(name: "hi.words", bytes: Array("login_title = नमस्ते\n".utf8))
    let words = PageSet([hindi], brand: Brand(), languages: ["hi"]).languages[0]
    #expect(
      words["login_title"] == "नमस्ते" && words["sign_in"] == "साइन इन करें", "a custom line overrides the shipped one"
    )
    #expect(
      LanguageChoice.choose(accepting: ["xx"], among: PageSet([], brand: Brand(), languages: ["hi", "en"]).languages)?
        .tag == "hi")
  }

  @Test func languagesWithoutWordsAreRefused() {
    var gateway = GatewaySettings.test()
    gateway.languages = ["en", "nl", "hi"]
    gateway.locations["languages"] = SourceLocation(file: "gateway.lua", line: 7)
    let problems = PageRenderer.problems(of: [], gateway: gateway)
    #expect(problems.map(\.location.line) == [7])
    #expect(
      problems.first?.message == "no translation for \"nl\": add pages/nl.words, or choose from en, hi")
    #expect(PageRenderer.problems(of: [PageFile(name: "nl.words", bytes: [])], gateway: gateway) == [])
  }

  @Test(arguments: [
    ("Enter the 6-digit code.", "6 अंकों का कोड लिखें।"), ("Enter the 8-character code.", "8 अक्षरों का कोड लिखें।"),
    ("No 7 here", "No 7 here"),
  ])
  func sentencesWithNumbers(_ english: String, _ hindi: String) throws {
    #expect(try language("hi").translated(english) == hindi)
  }

  /// The names in the models are those that templates may use; `PageTemplate` maps each template to its model.
  @Test(arguments: PageTemplate.allCases) func modelsAndTemplates(_ template: PageTemplate) {
    #expect(template.model.template == template)
    #expect(PageSet.builtIn.contains { $0.name == "\(template.rawValue).mustache" })
    let names = PageTemplate.names(in: template.rawValue)
    #expect(names.members["frame"]?.members["languages"]?.members["address"] == ModelShape(members: [:]))
    #expect(names.members.count > 2 && PageSet.faults == [])
  }
}

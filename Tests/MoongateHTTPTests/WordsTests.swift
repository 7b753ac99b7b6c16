import MoongateCore
import MoongateSDK
import Testing

@testable import MoongateHTTP

/// The languages that ship say all there is to say.
@Suite struct WordsTests {
  private let languages = PageSet([], brand: Brand()).languages

  private func language(_ tag: String) throws -> Words { try #require(languages.first { $0.tag == tag }) }

  @Test("an eight-digit code is an 8-digit code", arguments: 4...19)
  func lengths(_ length: Int) throws {
    let article = [8, 11, 18].contains(length) ? "an" : "a"
    #expect(try language("en").text("sent_digits", length: length) == "We've sent \(article) \(length)-digit code to")
    #expect(try language("en").text("sent_characters", length: length) == "We've sent \(article) \(length)-character code to")
    #expect(try language("hi").text("sent_digits", length: length) == "हमने \(length) अंकों का कोड यहाँ भेजा है")
    #expect(try language("hi").text("sent_characters", length: length) == "हमने \(length) अक्षरों का कोड यहाँ भेजा है")
  }

  /// A language of the operator's that says a sentence in general does not say it in English for some numbers.
  @Test func formsForOneNumberAreTheLanguagesOwn() {
    let own = PageFile(name: "fr.words", bytes: Array("sent_digits = Un code à {length} chiffres\nsent_digits_9 = Neuf\n".utf8))
    let french = PageSet([own], brand: Brand()).languages[2]
    #expect([7, 8, 9].map { french.text("sent_digits", length: $0) } == ["Un code à 7 chiffres", "Un code à 8 chiffres", "Neuf"])
    #expect(french.text("sent_characters", length: 8) == "We've sent an 8-character code to", "what is left out is English, rightly said")
  }

  @Test func everyNameIsInHindi() throws {
    let (english, hindi) = (try language("en").texts, try language("hi").texts)
    let same = english.filter { hindi[$0.key] == $0.value && $0.value.contains(/[A-Za-z]{3}/) }
    #expect(Set(same.keys) == ["direction"])
    // What is filled in is the same in both.
    for (name, text) in english where hindi[name] != nil {
      let braces = { (text: String) in text.matches(of: /\{\w+\}/).map { String($0.0) }.sorted() }
      #expect(braces(text) == braces(hindi[name] ?? ""), "\(name)")
    }
  }

  @Test("every refusal is in Hindi", arguments: RefusalCode.reserved.sorted())
  func refusals(_ name: String) throws {
    let code = try #require(RefusalCode(reserved: name))
    let hindi = try language("hi")
    for said in [code.title, code.sentence] {
      #expect(hindi.translated(said).unicodeScalars.contains { (0x900...0x97f).contains($0.value) }, "\(said)")
    }
    let late = Refusal(code, decision: DecisionID(text: "dc_x"), retryAfter: .seconds(90))
    #expect(hindi.sentence(of: late).contains(/[\u{900}-\u{97f}]/), "\(late.sentence)")
  }

  @Test(arguments: [("Enter the 6-digit code.", "6 अंकों का कोड लिखें।"), ("Enter the 8-character code.", "8 अक्षरों का कोड लिखें।"), ("No 7 here", "No 7 here")])
  func sentencesWithNumbers(_ english: String, _ hindi: String) throws { #expect(try language("hi").translated(english) == hindi) }

  /// What the code names is what templates may name: `PageTemplate` leads every model to the template that shows it.
  @Test(arguments: PageTemplate.allCases) func modelsAndTemplates(_ template: PageTemplate) {
    #expect(template.model.template == template)
    let names = PageTemplate.names(in: template.rawValue)
    #expect(names.members["frame"]?.members["languages"]?.members["address"] == ModelShape(members: [:]))
    #expect(names.members.count > 2 && PageSet.faults == [])
  }
}

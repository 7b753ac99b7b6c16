import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateTesting
import Testing

/// Files in `pages/` and the problems reported for them.
@Suite struct PageOverrideTests {
  private func problems(_ files: KeyValuePairs<String, String>) -> [ConfigurationProblem] {
    PageRenderer.problems(of: files.map { PageFile(name: $0.key, bytes: Array($0.value.utf8)) })
  }

  /// Mustache ignores unknown names, so a page with a misspelt layout would be blank.
  @Test(
    "an unknown name in a tag is reported with its line",
    arguments: [
      (
        "{{<layot}}\n{{$content}}x{{/content}}\n{{/layot}}\n", 1, "unknown template `layot`; did you mean `layout`?"
      ),
      ("<p>\n{{> headline }}</p>", 2, "unknown template `headline`"),
      ("<p>\n\n<b>{{w.sign_uot}}</b>", 3, "unknown words `sign_uot`; did you mean `sign_out`?"),
      (
        "{{#isSignedIn}}\r\n{{{ w.nothing_like_it }}}{{/isSignedIn}}", 2,
        "unknown words `nothing_like_it`"
      ),
      ("{{uppercased(w.sign_outt)}}", 1, "unknown words `sign_outt`; did you mean `sign_out`?"),
      ("<i>\n{{frame.servise}}", 2, "`frame` has no member `servise`; did you mean `service`?"),
      (
        "{{#frame.languages}}\n{{adress}}{{/frame.languages}}", 2,
        "unknown name `adress`; did you mean `address`?"
      ),
      ("{{title}}", 1, "unknown name `title`"),
      (
        "\n\n{{#isSigndIn}}{{anything}}{{/isSigndIn}}", 3,
        "unknown name `isSigndIn`; did you mean `isSignedIn`?"
      ),
      (
        "{{^isSignedInn}}x{{/isSignedInn}}", 1,
        "unknown name `isSignedInn`; did you mean `isSignedIn`?"
      ),
      ("{{uppercased(returnTwo)}}", 1, "unknown name `returnTwo`; did you mean `returnTo`?"),
      (
        "{{<layout}}{{$content}}\n{{bakc}}{{/content}}{{/layout}}", 2,
        "unknown name `bakc`; did you mean `back`?"
      ),
      ("{{#frame.logo}}{{adress}}{{/frame.logo}}", 1, "unknown name `adress`"),
      ("{{#w}}\n{{sign_uot}}{{/w}}", 2, "unknown name `sign_uot`; did you mean `sign_out`?"),
      ("{{&frame}}{{{bakk}}}", 1, "unknown name `bakk`; did you mean `back`?"),
    ])
  func namesNothing(_ text: String, _ line: Int, _ message: String) throws {
    let problem = try #require(problems(["logout.mustache": text]).first)
    #expect(problem.location.file == "pages/logout.mustache" && problem.location.line == line)
    #expect(problem.message == message)
  }

  @Test(
    "comments, text and valid tags have no problems",
    arguments: [
      "{{! {{w.mine}} }}x", "{{!\n{{<mine}} }}",
      "<p>w.mine {{>logo}} {{w.sign_out}}{{#w.sign_out}}{{.}}{{/w.sign_out}}",
      "{{<layout}}{{$content}}{{uppercased(w.sign_out)}}{{/content}}{{/layout}}", "{{=<% %>=}}{{w.mine}}",
      "{{#frame.languages}}{{#isCurrent}}{{name}}{{/isCurrent}}{{^isCurrent}}{{address}}{{back}}{{/isCurrent}}{{/frame.languages}}{{frame.title}}",
      "{{#frame.languages}}{{^first()}}, {{/first()}}{{name}}{{/frame.languages}}",
      "{{#returnTo}}{{.}}{{/returnTo}}{{>*back}}",
      "{{#w}}{{sign_out}}{{#isSignedIn}}{{cancel}}{{back}}{{/isSignedIn}}{{/w}}{{#frame}}{{title}}{{#languages}}{{tag}}{{/languages}}{{/frame}}",
    ])
  func namesWhatThereIs(_ text: String) { #expect(problems(["logout.mustache": text]) == []) }

  /// A page's names are checked against that page's model; names in files that all pages include, against every model.
  @Test func namesAreCheckedAgainstThePagesModel() {
    #expect(problems(["account.mustache": "{{#rows}}{{#links}}{{label}}{{badge}}{{/links}}{{/rows}}{{notice}}"]) == [])
    #expect(problems(["account.mustache": "{{label}}"]).map(\.message) == ["unknown name `label`"])
    #expect(problems(["leave.mustache": "{{isSignedIn}}"]).count == 1)
    #expect(
      problems(["code.mustache": "{{#countdown}}{{milliseconds}}{{text}}{{/countdown}}{{#boxes}}x{{/boxes}}"]) == [])
    #expect(
      problems(["layout.mustache": "{{stressesSupport}}{{isSignedIn}}{{isArrival}}{{#rows}}{{badge}}{{/rows}}"]) == [])
    #expect(
      problems(["layout.mustache": "{{isArival}}"]).map(\.message) == [
        "unknown name `isArival`; did you mean `isArrival`?"
      ])
  }

  /// A form of a sentence for one particular number exists only in the languages that define it.
  @Test("forms for one number", arguments: ["{{w.sent_digits_8}}"])
  func numbers(_ text: String) {
    #expect(problems(["logout.mustache": text]) == [])
    #expect(problems(["fr.words": "sent_digits = {length} chiffres\nsent_digits_9 = neuf chiffres"]) == [])
    #expect(
      problems(["fr.words": "sent_digit_9 = neuf\nsend_digits = x"]).map(\.message) == [
        "unknown words `sent_digit_9`",
        "unknown words `send_digits`; did you mean `sent_digits`?",
      ])
  }

  @Test func allProblemsOfAFileAreReported() {
    #expect(problems(["logout.mustache": "{{w.one}}\n{{w.two}}\n{{>three}}"]).map(\.location.line) == [1, 2, 3])
  }

  /// Rendering such a template would overflow the stack and end the program.
  @Test func recursiveTemplatesAreRefused() {
    #expect(problems(["logo.mustache": "<i>{{>logo}}</i>"]).map(\.location.file) == ["pages/logo.mustache"])
    let both = problems(["logo.mustache": "{{>leave}}", "leave.mustache": "{{>logo}}"])
    #expect(both.map(\.location.file) == ["pages/leave.mustache", "pages/logo.mustache"])
    #expect(both.allSatisfy { $0.message.contains("includes itself") })
    #expect(problems(["logo.mustache": "<b>{{frame.service}}</b>"]) == [])
  }

  @Test(
    "an override that renders to nothing is replaced by the shipped page",
    arguments: ["", " \n", "{{#isSignedIn}}x{{/isSignedIn}}"])
  func blank(_ text: String) async throws {
    let gateway = try HTTPGateway { generation in
      generation.pages = [PageFile(name: "logout.mustache", bytes: Array(text.utf8))]
    }
    try await gateway.run { client in
      let page = try await client.send(.get, "/auth/logout", headers: [("Accept", "text/html")])
      #expect(page.status == 200 && page.text.contains("<h1>Sign out</h1>"))
      #expect(
        client.gateway.log.lines.contains {
          $0.hasPrefix("error a template of pages/ is empty") && $0.contains("page=logout")
        })
    }
  }
}

import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateTesting
import Testing

/// What an operator puts into `pages/`, and what is wrong with it.
@Suite struct PageOverrideTests {
  private func problems(_ files: KeyValuePairs<String, String>) -> [ConfigurationProblem] {
    PageRenderer.problems(of: files.map { PageFile(name: $0.key, bytes: Array($0.value.utf8)) })
  }

  /// Mustache takes what it does not find for nothing, and a page whose layout is misspelt would be blank.
  @Test(
    "a tag that names nothing is refused with its line",
    arguments: [
      ("{{<layot}}\n{{$content}}x{{/content}}\n{{/layot}}\n", 1, "there is no template `layot`; did you mean `layout`?"),
      ("<p>\n{{> headline }}</p>", 2, "there is no template `headline`"),
      ("<p>\n\n<b>{{w.sign_uot}}</b>", 3, "the pages have no words of the name `sign_uot`; did you mean `sign_out`?"),
      ("{{#isSignedIn}}\r\n{{{ w.nothing_like_it }}}{{/isSignedIn}}", 2, "the pages have no words of the name `nothing_like_it`"),
      ("{{uppercased(w.sign_outt)}}", 1, "the pages have no words of the name `sign_outt`; did you mean `sign_out`?"),
    ])
  func namesNothing(_ text: String, _ line: Int, _ message: String) throws {
    let problem = try #require(problems(["logout.mustache": text]).first)
    #expect(problem.location.file == "pages/logout.mustache" && problem.location.line == line)
    #expect(problem.message == message)
  }

  @Test(
    "what is only said of a tag is none",
    arguments: [
      "{{! {{w.mine}} }}x", "{{!\n{{<mine}} }}", "<p>w.mine {{>logo}} {{w.sign_out}}{{#w.sign_out}}{{.}}{{/w.sign_out}}",
      "{{<layout}}{{$content}}{{uppercased(w.sign_out)}}{{/content}}{{/layout}}", "{{=<% %>=}}{{w.mine}}",
    ])
  func namesWhatThereIs(_ text: String) { #expect(problems(["logout.mustache": text]) == []) }

  @Test func everyProblemOfAFileAtOnce() {
    #expect(problems(["logout.mustache": "{{w.one}}\n{{w.two}}\n{{>three}}"]).map(\.location.line) == [1, 2, 3])
  }

  /// The program would end with the first page that is asked for.
  @Test func templatesWithoutEnd() {
    #expect(problems(["logo.mustache": "<i>{{>logo}}</i>"]).map(\.location.file) == ["pages/logo.mustache"])
    let both = problems(["logo.mustache": "{{>google}}", "google.mustache": "{{>logo}}"])
    #expect(both.map(\.location.file) == ["pages/google.mustache", "pages/logo.mustache"])
    #expect(both.allSatisfy { $0.message.contains("leads back to itself") })
    #expect(problems(["logo.mustache": "{{>google}}"]) == [])
  }

  @Test("nobody is left before a blank page", arguments: ["", " \n", "{{#nothing}}x{{/nothing}}"])
  func blank(_ text: String) async throws {
    let gateway = try HTTPGateway { generation in generation.pages = [PageFile(name: "logout.mustache", bytes: Array(text.utf8))] }
    try await gateway.run { client in
      let page = try await client.send(.get, "/auth/logout", headers: [("Accept", "text/html")])
      #expect(page.status == 200 && page.text.contains("<h1>Sign out</h1>"))
      #expect(client.gateway.log.lines.contains { $0.hasPrefix("error a template of pages/ says nothing") && $0.contains("page=logout") })
    }
  }
}

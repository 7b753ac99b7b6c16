import Foundation
import HTTPTypes
import MoongateCore
import MoongateProxy
import MoongateTesting
import Testing

@testable import MoongateHTTP

/// Templates in the folders of `error_pages`.
@Suite struct ErrorPageTests {
  private static let page = "<h1>{{title}}</h1>"

  private func problems(_ text: String, _ name: String = "errors/403.mustache") -> [String] {
    PageRenderer.problems(of: [PageFile(name: name, bytes: Array(text.utf8))]).map { "\($0.location): \($0.message)" }
  }

  @Test(
    "a mistake in a template is reported with its line",
    arguments: [
      ("{{<layot}}\n{{/layot}}", "1: unknown template `layot`; did you mean `layout`?"),
      ("<p>\n\n{{sentense}}", "3: unknown name `sentense`; did you mean `sentence`?"),
      ("\n{{w.try_agin}}", "2: unknown words `try_agin`; did you mean `try_again`?"),
      ("\n{{#links}}{{adress}}{{/links}}", "2: unknown name `adress`; did you mean `address`?"),
      ("\n{{frame.servise}}", "2: `frame` has no member `servise`; did you mean `service`?"),
      ("x\n{{#links}}", "2: a section is not closed"), ("{{phone}}", "1: unknown name `phone`"),
      ("\n{{>errors/502}}", "2: unknown template `errors/502`"),
      // Attack: the sentence of a policy repeats the path of the request.
      ("\n\n{{{sentence}}}", "3: this tag turns escaping off: write {{name}}"),
      ("x\n{{& sentence}}", "2: this tag turns escaping off: write {{name}}"),
      ("{{% CONTENT_TYPE:TEXT}}\n{{sentence}}", "1: this tag turns escaping off: write {{name}}"),
      ("{{title}}\n{{=<% %>=}}<%&sentence%>", "2: this tag turns escaping off: write {{name}}"),
    ]) func mistakes(_ text: String, _ problem: String)
  {
    #expect(problems(text) == ["pages/errors/403.mustache:\(problem)"])
  }

  @Test func emptyAndLargeTemplatesAreRefused() {
    for text in ["", " \n", "{{! nothing }}", "{{^title}}x{{/title}}"] {
      #expect(problems(text) == ["pages/errors/403.mustache: shows nothing, or more than 256 KiB"], "\(text)")
    }
    let large = String(repeating: "x", count: 64 * 1024)
    #expect(problems(large) == [])
    #expect(problems(large + "x") == ["pages/errors/403.mustache: is larger than 64 KiB"])
    let repeated = String(repeating: "{{>logo}}", count: 2000)
    #expect(problems(repeated) == ["pages/errors/403.mustache: shows nothing, or more than 256 KiB"])
    #expect(
      PageRenderer.problems(of: [PageFile(name: "errors/error.mustache", bytes: [0x80])]).map(\.message)
        == ["is not UTF-8"])
  }

  @Test func everyValueCanBeUsed() throws {
    let text = """
      {{<layout}}{{$content}}<style nonce="{{nonce}}">h1 { color: #000 }</style><h1>{{status}} {{title}}</h1>
      <p>{{code}} {{sentence}} {{reference}} {{decision}} {{frame.language}} {{w.try_again}}</p>
      {{#retryAfter}}{{.}}{{/retryAfter}}{{#signedInAs}}{{.}}{{/signedInAs}}
      {{#links}}<a class="{{style}}" href="{{address}}">{{label}}</a>{{/links}}<a href="{{home}}">x</a>
      {{/content}}{{/layout}}
      """
    #expect(problems(text) == [])
    // The template of the built-in page is a start.
    let own = try #require(PageSet.builtIn.first { $0.name == "message.mustache" })
    let named = String(decoding: own.bytes, as: UTF8.self).replacing("{{heading}}", with: "{{title}}")
    #expect(problems(named) == [])
  }

  /// The templates of the guide.
  @Test func examplesOfTheGuideAreValid() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let guide = try String(
      contentsOf: root.appending(path: "Documentation/guides/real-services.md"), encoding: .utf8)
    let blocks = guide.components(separatedBy: "```html\n").dropFirst().compactMap {
      $0.components(separatedBy: "```").first
    }
    let examples = blocks.compactMap { block in
      block.firstMatch(of: /^<!-- pages\/(errors\/\w+\.mustache) -->\n/).map { (String($0.1), block) }
    }
    #expect(examples.map(\.0) == ["errors/403.mustache", "errors/error.mustache"])
    for (name, text) in examples { #expect(problems(text, name) == [], "\(name)") }
  }

  private func renderer(_ files: KeyValuePairs<String, String>) throws -> (PageRenderer, TestGeneration, CapturedLog) {
    var generation = TestGeneration.gateway(
      for: [], settings: .test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443)))
    generation.pages = files.map { PageFile(name: $0.key, bytes: Array($0.value.utf8)) }
    let log = CapturedLog()
    return (try PageRenderer(logger: log.logger), generation, log)
  }

  private func refused(
    _ code: RefusalCode, detail: String? = nil, in templates: String = "errors", languages: String? = nil
  ) -> RefusedRequest {
    RefusedRequest(
      refusal: Refusal(code, decision: DecisionID(text: "dc_1"), detail: detail, retryAfter: .seconds(30)),
      visitor: nil, languages: languages, templates: templates, nonce: "n0nce")
  }

  @Test func statusChoosesTheTemplate() throws {
    let (pages, generation, _) = try renderer([
      "errors/403.mustache": "403 {{code}} {{status}}", "errors/error.mustache": "other {{code}} {{status}}",
      "more/502.mustache": "more {{code}}",
    ])
    func shown(_ code: RefusalCode, in templates: String = "errors") -> String? {
      pages.html(for: refused(code, in: templates), generation: generation)
    }
    #expect(shown(.forbidden) == "403 forbidden 403" && shown(.policyReason("late")) == "403 late 403")
    #expect(shown(.upstreamTimeout) == "other upstream_timeout 504")
    #expect(shown(.upstreamUnavailable, in: "more") == "more upstream_unavailable")
    #expect(shown(.forbidden, in: "more") == nil && shown(.forbidden, in: "none") == nil)
    #expect(shown(.forbidden, in: "") == nil && shown(.forbidden, in: "errors/403") == nil)
  }

  @Test func valuesAreThoseOfTheRefusal() throws {
    let (pages, generation, _) = try renderer([
      "errors/error.mustache": """
      {{status}}|{{code}}|{{title}}|{{sentence}}|{{reference}}|{{decision}}|{{retryAfter}}|{{home}}|{{nonce}}|\
      {{frame.language}}|{{#links}}{{address}}{{/links}}
      """
    ])
    #expect(
      pages.html(for: refused(.rateLimited, detail: "Slow <b>down</b> & \"wait\"."), generation: generation)
        == "429|rate_limited|Too many requests|Slow &lt;b&gt;down&lt;/b&gt; &amp; &quot;wait&quot;.|"
        + "Reference: dc_1|dc_1|30|https://auth.example.com|n0nce|en|")
    let hindi = try #require(
      pages.html(for: refused(.denied, languages: "hi-IN, en;q=0.5"), generation: generation))
    #expect(hindi.contains("|hi|https://auth.example.com/auth/account") && !hindi.contains("Access"))
  }

  /// The folder `errors` is not one of pages that replace ours.
  @Test func templatesReplaceNoPage() async throws {
    let gateway = try HTTPGateway { generation in
      generation.pages = [PageFile(name: "errors/logout.mustache", bytes: Array("mine".utf8))]
    }
    try await gateway.run { client in
      let page = try await client.send(.get, "/auth/logout", headers: [("Accept", "text/html")])
      #expect(!page.text.contains("mine"))
    }
  }

  @Test func templateThatShowsNothingIsReplaced() throws {
    let (pages, generation, log) = try renderer(["errors/error.mustache": "{{#signedInAs}}x{{/signedInAs}}"])
    #expect(pages.html(for: refused(.forbidden), generation: generation) == nil)
    #expect(log.lines.contains { $0.hasPrefix("error a template of error_pages") && $0.contains("page=errors/error") })
  }
}

import MoongateCore
import Testing

/// Which requests a browser makes to open a page.
@Suite struct NavigationHeadersTests {
  private static func isNavigation(_ fields: [String]) -> Bool {
    var headers = NavigationHeaders()
    for field in fields {
      let parts = field.split(separator: ":", maxSplits: 1).map { Array($0.drop { $0 == " " }.utf8) }
      let (name, value) = (parts[0], parts.count > 1 ? parts[1] : [])
      headers.read(name.span, value.span)
    }
    return headers.isNavigation
  }

  @Test(arguments: [
    ["Sec-Fetch-Mode: navigate"], ["sec-fetch-mode: navigate", "Sec-Fetch-Dest: document", "Accept: */*"],
    ["Sec-Fetch-Mode: navigate", "X-Requested-With: com.example.app"], ["Accept: text/html"],
    ["Accept: text/html, */*; q=0.01"], ["Accept: application/json", "Accept: text/html"],
    ["Sec-Fetch-Mode: navigate", "Sec-Purpose: other"],
  ])
  func aBrowserThatOpensAPageIsRedirected(_ fields: [String]) { #expect(Self.isNavigation(fields)) }

  @Test(arguments: [
    // A script that accepts HTML, with and without Fetch Metadata.
    ["Accept: text/html, */*; q=0.01", "X-Requested-With: XMLHttpRequest", "Sec-Fetch-Mode: cors"],
    ["Accept: text/html", "X-Requested-With: XMLHttpRequest"], ["Accept: text/html", "HX-Request: true"],
    ["Accept: text/html", "Sec-Fetch-Mode: cors"], ["Accept: text/html", "Sec-Fetch-Mode: no-cors"],
    ["Accept: text/html", "Sec-Fetch-Site: same-origin"],
    // A prefetch or prerender, which may be shown later.
    ["Accept: text/html", "Sec-Fetch-Mode: navigate", "Sec-Purpose: prefetch;prerender"],
    ["Accept: text/html", "Sec-Fetch-Mode: navigate", "Sec-Purpose: Prefetch"],
    ["Accept: text/html", "Sec-Purpose: prefetch"],
    // A program.
    [], ["Accept: */*"], ["Accept: text/html;q=0, application/json"],
    // Ambiguous.
    ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Mode: cors"], ["Sec-Fetch-Mode: navigate, cors"],
  ])
  func otherRequestsAreNot(_ fields: [String]) { #expect(!Self.isNavigation(fields)) }
}

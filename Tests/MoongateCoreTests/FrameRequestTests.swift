import MoongateCore
import Testing

/// For which requests the cookies of frames count.
@Suite struct FrameRequestTests {
  private static func request(_ fields: [String]) -> FrameRequest {
    var request = FrameRequest()
    for field in fields {
      let parts = field.split(separator: ":", maxSplits: 1).map { Array($0.drop { $0 == " " }.utf8) }
      let (name, value) = (parts[0], parts.count > 1 ? parts[1] : [])
      request.read(name.span, value.span)
    }
    return request
  }

  @Test(arguments: [
    // The embedding page opens the frame, a link in it leads on, the user reloads the tab.
    ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
    ["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
    ["sec-fetch-site: same-origin", "sec-fetch-mode: navigate"],
    ["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
    // What the service's own page loads.
    ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"],
    ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"], ["Sec-Fetch-Site: same-origin"],
  ])
  func ownPagesAndNavigationsMayRead(_ fields: [String]) {
    #expect(Self.request(fields).admitsCookies(isReading: true, hasOwnOrigin: false))
  }

  /// Attack: a page in the same tab includes an answer, or reads its size and time.
  @Test(arguments: [
    ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"],
    ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"], ["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"],
    ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: websocket"], ["Sec-Fetch-Site: none", "Sec-Fetch-Mode: no-cors"],
    ["Sec-Fetch-Site: cross-site"],
    // Ambiguous, or unknown.
    ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: no-cors"],
    ["Sec-Fetch-Site: same-origin, cross-site"], ["Sec-Fetch-Site:"], ["Sec-Fetch-Site: something-new"],
    ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Mode: navigate"],
    // No Fetch Metadata: a program, or a browser that does not partition cookies.
    [], ["Sec-Fetch-Mode: navigate"], ["Sec-Fetch-User: ?1"],
  ])
  func otherPagesMayNotRead(_ fields: [String]) {
    #expect(!Self.request(fields).admitsCookies(isReading: true, hasOwnOrigin: false))
  }

  @Test(
    arguments: [
      (["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: navigate"], true, true),
      (["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"], true, true),
      // The handshake of a WebSocket, in browsers without Fetch Metadata for it.
      ([], true, true),
      // Attack: a form or a script of another page.
      (["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], false, false),
      (["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], true, false),
      (["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"], true, false),
      (["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: navigate"], false, false), ([], false, false),
    ] as [([String], Bool, Bool)])
  func changingNeedsTheOwnOrigin(_ fields: [String], _ hasOwnOrigin: Bool, _ isAdmitted: Bool) {
    #expect(Self.request(fields).admitsCookies(isReading: false, hasOwnOrigin: hasOwnOrigin) == isAdmitted)
  }

  @Test func onlyADocumentIsTopLevel() {
    #expect(Self.request(["Sec-Fetch-Dest: document"]).isTopLevel)
    for field in ["Sec-Fetch-Dest: iframe", "Sec-Fetch-Dest: empty", "Sec-Fetch-Dest:", "Accept: text/html"] {
      #expect(!Self.request([field]).isTopLevel, "\(field)")
    }
  }
}

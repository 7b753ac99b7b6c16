import HTTPTypes
import Hummingbird
import MoongateCore

extension Exchange {
  /// Whether a script of the hosted pages sent the form. It receives the next address as JSON.
  var isScripted: Bool { pageAbilities.contains("script") }

  /// Whether the script found the browser's Web Authentication API.
  var canRunCeremonies: Bool { pageAbilities.contains("ceremony") }

  /// The abilities that the script reports. Pages of other sites cannot set this header without a preflight (CORS).
  private var pageAbilities: [Substring] {
    guard let name = HTTPField.Name("Moongate-Page"), let said = request.headers[name] else { return [] }
    return said.split { $0 == "," || $0 == " " }
  }

  /// Whether the form was sent only to show the page in another language, with the typed input.
  package var isSwitch: Bool {
    get throws(Refusal) { request.method == .post ? try query()["language"] != nil : false }
  }

  /// Continues on another page, by 303 or as JSON for scripts.
  package func redirect(to address: String, _ cookies: [String] = []) -> Response {
    var response = isScripted ? Response.json(.members(["next": .text(address)])) : .seeOther(address)
    response.setCookies(cookies)
    return response
  }

  /// Redirects a browser without a session to the sign-in page, which leads back to the address.
  package func redirectToSignIn(returnTo address: String?) throws(Refusal) -> Response {
    try redirectToSignIn(FormFields.address(PagePath.signIn, ["return_to": address]))
  }

  /// Redirects a browser without a session to the sign-in page. Only a navigation is redirected, and the pages' own
  /// script, which gets the address.
  /// - Throws: 401 `unauthenticated` for any other request.
  func redirectToSignIn(_ address: String) throws(Refusal) -> Response {
    guard isScripted || request.opensPage else { throw refusal(.unauthenticated) }
    return redirect(to: address)
  }

  /// The response to a refusal after which a form is not shown again. Logs the refusal if the form is shown.
  /// - Parameter signIn: the address where a user without a session signs in; if nil, that refusal is thrown.
  /// - Returns: nil if the page shows the refusal.
  /// - Throws: the refusal if the flow does not exist or has expired.
  func responseWithoutForm(after refusal: Refusal, signIn: String?) throws(Refusal) -> Response? {
    switch refusal.code {
    case .unauthenticated:
      guard let signIn else { throw refusal }
      return try redirectToSignIn(signIn)
    case .flowNotFound, .flowExpired: throw refusal
    default:
      log(refusal)
      return nil
    }
  }
}

extension Request {
  /// Whether a browser opens a page with the request (`NavigationHeaders`), so that it may be redirected to sign-in.
  var opensPage: Bool {
    var found = NavigationHeaders()
    for field in headers {
      let (name, value) = (Array(field.name.rawName.utf8), Array(field.value.utf8))
      found.read(name.span, value.span)
    }
    return found.isNavigation
  }

  /// Whether the browser says that it opens a page (Fetch Metadata, `Sec-Fetch-Mode`).
  var isNavigation: Bool { HTTPField.Name("Sec-Fetch-Mode").map { headers[$0] } == "navigate" }
}

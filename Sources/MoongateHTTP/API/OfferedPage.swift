import MoongateCore
import MoongateSDK

/// After a sign-in, redirects to a page on which the user can set up a factor that accounts.lua offers (`offer`), or
/// skip it. A password that attackers know is offered to be replaced, before any factor.
///
/// It is the page of the flow that sets the factor up, with an additional link. `offer=1` in the address only shows
/// that link, so a forged address has no other effect.
enum OfferedPage {
  private static let mark = "offer"
  /// Names the session that began with a password that attackers know.
  static let exposure = "exposed"

  /// - Parameter next: the original target.
  /// - Returns: nil if the target is a page of the gateway, which has its own purpose.
  fileprivate static func address(of offered: OfferedFactor, next: String, _ exchange: Exchange) -> String? {
    let path = exchange.page(of: offered.provider)?.ownPath ?? ProviderPage.stepPath
    return FormFields.address(path, ["flow": offered.flow, "return_to": next, mark: "1"])
  }

  /// The page on which a user replaces a password that attackers know, by a code to the account's own address.
  /// - Parameter next: the original target.
  /// - Returns: nil if the account has no verified address, or if no flow resets the password.
  fileprivate static func address(replacingExposed view: FlowView, next: String, _ exchange: Exchange) -> String? {
    guard view.account?.isEmailVerified ?? false,
      view.exposed.contains(where: { exchange.generation.flow(for: .factor($0, .recover)) != nil })
    else { return nil }
    return FormFields.address(
      PagePath.signIn, ["with": "reset", "return_to": next, mark: "1", exposure: view.session?.id])
  }

  /// Whether an address is a page of the gateway.
  fileprivate static func isOurs(_ address: String, _ exchange: Exchange) -> Bool {
    address.hasPrefix("/auth/") || address.hasPrefix("\(exchange.gateway.publicURL)/auth/")
  }

  /// Whether the request is for an offered page.
  fileprivate static func isNamed(by exchange: Exchange) -> Bool { (try? exchange.query()[mark]) == "1" }

  /// The address of the same page as an offer.
  fileprivate static func marked(_ address: String) -> String {
    address + (address.contains("?") ? "&" : "?") + mark + "=1"
  }
}

extension Exchange {
  /// Whether the page is shown as an offer, which can be skipped.
  var isOffer: Bool { OfferedPage.isNamed(by: self) }

  /// The id of the session if the gateway has made the address of the page because attackers know the password with
  /// which the session began; nil otherwise.
  ///
  /// Attack: a forged address tells a signed-in user that the password is known from a data breach. It would have to
  /// name the user's session.
  func exposure(in session: Session) -> String? {
    (try? query()[OfferedPage.exposure]) == session.id ? session.id : nil
  }

  /// The address of another page of the flow, as an offer if this page is one.
  func keepingOffer(_ address: String) -> String { isOffer ? OfferedPage.marked(address) : address }

  /// The target of "Skip for now"; nil if the page is not an offer.
  /// - Parameter returnTo: already validated.
  func skipping(_ purpose: FlowPurpose, _ flow: String, to returnTo: String?) -> String? {
    guard isOffer, purpose.setProvider != nil else { return nil }
    return returnTo ?? generation.flows[flow]?.next.returning ?? "/"
  }
}

extension FlowDriver {
  /// The address after a sign-in in the user's own browser: the page of an offered factor, or the original target.
  ///
  /// A ceremony is offered only to a browser that has reported that it supports it. Without scripts, and after a
  /// sign-in with another site, this is unknown.
  func next(after view: FlowView, client: ClientContext, _ exchange: Exchange) async -> String? {
    guard exchange.kind == .page, let next = view.next, !OfferedPage.isOurs(next, exchange) else { return view.next }
    // No site may show the pages in a frame that change an account.
    if exchange.credentials.mayBeInFrame { return exchange.nextInFrame(next, view.returnTo) }
    if let address = OfferedPage.address(replacingExposed: view, next: next, exchange) { return address }
    let canRunCeremonies = exchange.canRunCeremonies
    let offered = await engine.offer(after: view, client: client) { descriptor in
      if case .ceremony? = descriptor.presentation { canRunCeremonies } else { true }
    }
    return offered.flatMap { OfferedPage.address(of: $0, next: next, exchange) } ?? next
  }
}

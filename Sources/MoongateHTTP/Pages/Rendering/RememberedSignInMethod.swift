import Hummingbird
import MoongateCore
import MoongateSDK

/// Remembers on this device by which provider its user has signed in last, so that the sign-in page offers it first.
///
/// Only after a sign-in with the choice to stay signed in on this device. A sign-in without that choice forgets it;
/// signing out does not, because the page is only seen afterwards. The cookie contains the provider's name and nothing
/// about the user, and is not trusted: a forged one can only change the order of what the page offers anyway.
enum RememberedSignInMethod {
  private static let cookie = GatewayCookies.signInMethod
  /// A year in seconds.
  private static let maxAge = 31_536_000

  /// The remembered provider; nil if none is, or if it is no provider of this configuration.
  static func find(in exchange: Exchange) -> ProviderName? {
    exchange.request.headers.cookies(cookie).prefix(4).compactMap(ProviderName.init(rawValue:)).first {
      exchange.page(of: $0) != nil
    }
  }

  /// The `Set-Cookie` value after a flow of the browser has completed; nil if nothing changes.
  static func keep(after view: FlowView, _ exchange: Exchange) -> String? {
    guard view.status == .complete, view.isOfBrowser else { return nil }
    switch view.purpose {
    case .signIn, .register: break
    default: return nil
    }
    let kept = view.staysSignedIn ? view.passed.first?.provider : nil
    let isSent = !exchange.request.headers.cookies(cookie).isEmpty
    guard kept != nil || isSent else { return nil }
    let secure = exchange.gateway.publicURL.isSecure ? "; Secure" : ""
    return
      "\(cookie)=\(kept?.rawValue ?? ""); Path=/auth; Max-Age=\(kept == nil ? 0 : maxAge); HttpOnly; SameSite=Lax\(secure)"
  }
}

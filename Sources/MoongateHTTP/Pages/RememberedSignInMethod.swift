import Hummingbird
import MoongateCore

/// Remembers the last sign-in method in a cookie, so that the page begins with it. It contains only the method, so a
/// forged cookie can only change which form is shown first.
enum RememberedSignInMethod {
  private static let cookie = GatewayCookies.signInMethod
  /// A year in seconds.
  private static let maxAge = 31_536_000

  /// The remembered method; nil if it is the default or none is remembered.
  static func find(in exchange: Exchange) -> SignInPage.SignInMethod? {
    let kept = exchange.request.headers.cookies(cookie)
    return [SignInPage.SignInMethod.email, .code].first { kept.contains($0.rawValue) }
  }

  /// The `Set-Cookie` value that stores or clears the method; nil if nothing changes.
  static func keep(_ method: SignInPage.SignInMethod, _ exchange: Exchange) -> String? {
    let known = find(in: exchange)
    let kept = method == .email || method == .code ? method : nil
    guard method != .reset, kept != known else { return nil }
    let secure = exchange.gateway.publicURL.isSecure ? "; Secure" : ""
    return
      "\(cookie)=\(kept?.rawValue ?? ""); Path=/auth; Max-Age=\(kept == nil ? 0 : maxAge); HttpOnly; SameSite=Lax\(secure)"
  }
}

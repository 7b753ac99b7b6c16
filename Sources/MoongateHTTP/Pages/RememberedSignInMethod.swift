import Hummingbird
import MoongateCore

/// How the person signed in here the last time, so that the page begins with it. It names a way and nobody, and opens
/// nothing: whoever planted it has chosen the form that is shown first.
enum RememberedSignInMethod {
  static let cookie = "moongate-way"
  /// A year.
  private static let memory = 31_536_000

  /// The way; nil where it is the first one anyway, or none is kept.
  static func find(in exchange: Exchange) -> EntrancePage.SignInMethod? {
    [EntrancePage.SignInMethod.email, .code].first { way in
      exchange.request.headers[values: .cookie].contains { line in
        line.split(separator: ";").contains { $0.drop { $0 == " " } == "\(cookie)=\(way.rawValue)" }
      }
    }
  }

  /// The line of `Set-Cookie` that keeps it, or that forgets another; nil where nothing changes.
  static func keep(_ way: EntrancePage.SignInMethod, _ exchange: Exchange) -> String? {
    let known = find(in: exchange)
    let kept = way == .email || way == .code ? way : nil
    guard way != .reset, kept != known else { return nil }
    let secure = exchange.gateway.publicURL.isSecure ? "; Secure" : ""
    return
      "\(cookie)=\(kept?.rawValue ?? ""); Path=/auth; Max-Age=\(kept == nil ? 0 : memory); HttpOnly; SameSite=Lax\(secure)"
  }
}

import MoongateCore

extension ReceivingApp {
  /// Where the app receives codes: the origin of the redirect URI, or its private scheme. Users recognise it, and it is
  /// the source expression for `form-action` that lets the way back to the app through (Content Security Policy Level
  /// 3, section 2.3.1).
  var receiver: String {
    let isWeb = redirect.hasPrefix("https://") || redirect.hasPrefix("http://")
    guard isWeb, let separator = redirect.firstRange(of: "://") else {
      return String(redirect.prefix { $0 != ":" }) + ":"
    }
    let authority = redirect[separator.upperBound...].prefix { $0 != "/" && $0 != "?" }
    return String(redirect[..<authority.endIndex])
  }
}

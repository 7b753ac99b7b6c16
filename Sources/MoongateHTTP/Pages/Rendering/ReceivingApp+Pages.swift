import MoongateCore

extension ReceivingApp {
  /// Where the app receives codes: the origin of the redirect URI, or its private scheme. Users recognise it, and it is
  /// the source expression for `form-action` that lets the way back to the app through (Content Security Policy Level
  /// 3, section 2.3.1).
  package var receiver: String {
    WebAddress(redirect)?.origin.description ?? String(redirect.prefix { $0 != ":" }) + ":"
  }
}

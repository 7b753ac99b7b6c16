import MoongateSDK

/// A notice to users about a change of their account.
package enum Notice: Sendable, Equatable {
  /// - Parameter userAgent: the device's `User-Agent`. The notice only contains known names, never the header itself.
  case newDevice(userAgent: String?, at: Timestamp)
  /// nil: until an operator unlocks the account.
  case locked(for: Duration?)
  case emailAdded
  case emailChanged
  case phoneAdded
  case phoneChanged
  /// An identity at another site, with the site's display name.
  case siteConnected(String)
  case siteDisconnected(String)
  /// A trusted device, or several.
  case deviceRemoved
  /// Somebody signed in with a secret that attackers know.
  case exposed
  /// The provider's own notice about a change of its factor.
  case factor(FactorNotice)
  /// A factor of a provider without its own notice, by display name.
  case factorSet(String)
  case factorChanged(String)
  case factorRemoved(String)

  /// The name in the audit trail.
  var name: String {
    if case .newDevice = self { "newDevice" } else { "\(self)" }
  }

  /// Whether it is about a change of the account. Others are about sign-ins and attempts, which anyone may repeat.
  var isChange: Bool {
    switch self {
    case .newDevice, .locked, .exposed: false
    case .emailAdded, .emailChanged, .phoneAdded, .phoneChanged, .siteConnected, .siteDisconnected, .deviceRemoved: true
    case .factor, .factorSet, .factorChanged, .factorRemoved: true
    }
  }

  /// What has happened, as one sentence without a full stop.
  private func event(in language: any MessageLanguage) -> String {
    switch self {
    case .newDevice: language.translated("Someone signed in to your account on a new device")
    case .locked(let duration?):
      language.text(
        "Sign-in to your account is locked for {wait} after too many failed attempts",
        ["wait": language.spoken(duration)])
    case .locked(nil): language.translated("Sign-in to your account was turned off after too many failed attempts")
    case .emailAdded: language.translated("An email address was added to your account")
    case .emailChanged: language.translated("The email address on your account was changed")
    case .phoneAdded: language.translated("A phone number was added to your account")
    case .phoneChanged: language.translated("The phone number on your account was changed")
    case .siteConnected(let site):
      language.text("\"{name}\" was connected to your account", ["name": language.translated(site)])
    case .siteDisconnected(let site):
      language.text("\"{name}\" was disconnected from your account", ["name": language.translated(site)])
    case .deviceRemoved: language.translated("A trusted device was removed from your account")
    case .exposed:
      language.translated("Someone signed in to your account with a password that is known from a data breach")
    case .factor(let notice): language.translated(notice.event)
    case .factorSet(let title):
      language.text("\"{name}\" was set up for your account", ["name": language.translated(title)])
    case .factorChanged(let title):
      language.text("\"{name}\" on your account was changed", ["name": language.translated(title)])
    case .factorRemoved(let title):
      language.text("\"{name}\" on your account was turned off", ["name": language.translated(title)])
    }
  }

  /// The subject of an email.
  package func subject(service: String, in language: any MessageLanguage) -> String {
    let subject =
      switch self {
      case .newDevice: language.translated("New sign-in")
      case .locked: language.translated("Too many failed attempts")
      case .emailAdded: language.translated("Email address added")
      case .emailChanged: language.translated("Email address changed")
      case .phoneAdded: language.translated("Phone number added")
      case .phoneChanged: language.translated("Phone number changed")
      case .siteConnected(let site): language.text("{name} connected", ["name": language.translated(site)])
      case .siteDisconnected(let site): language.text("{name} disconnected", ["name": language.translated(site)])
      case .deviceRemoved: language.translated("Trusted device removed")
      case .exposed: language.translated("Leaked password")
      case .factor(let notice): language.translated(notice.subject)
      case .factorSet(let title): language.text("{name} set up", ["name": language.translated(title)])
      case .factorChanged(let title): language.text("{name} changed", ["name": language.translated(title)])
      case .factorRemoved(let title): language.text("{name} turned off", ["name": language.translated(title)])
      }
    return "\(service): \(subject)"
  }

  /// Additional lines: the device and the time. The location is not included, because the gateway does not look up
  /// addresses at a network service.
  private func details(in language: any MessageLanguage) -> [String] {
    guard case .newDevice(let userAgent, let time) = self else { return [] }
    let device = language.device(userAgent: userAgent).map { language.text("Device: {device}", ["device": $0]) }
    return [device, language.text("Time: {time}", ["time": time.minuteOfMessage])].compactMap(\.self)
  }

  /// The whole text: paragraphs in an email, one line in an SMS. It contains no link, so that users do not learn to
  /// follow links in such messages.
  package func text(service: String, by channel: MessageChannel, in language: any MessageLanguage) -> String {
    let first = language.text("{service}: {event}.", ["service": service, "event": event(in: language)])
    let last = language.translated("If this was not you, sign in, check your account and contact us.")
    let details = details(in: language)
    let isMail = channel == .mail
    let middle = details.isEmpty ? [] : [details.joined(separator: isMail ? "\n" : ". ") + (isMail ? "" : ".")]
    return ([first] + middle + [last]).joined(separator: isMail ? "\n\n" : " ")
  }
}

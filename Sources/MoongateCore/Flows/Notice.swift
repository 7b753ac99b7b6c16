import MoongateSDK

/// What people are told about their account without having asked.
package enum Notice: Sendable, Equatable {
  case newDevice
  /// nil: until an operator ends it.
  case locked(for: Duration?)
  case emailChanged
  case phoneAdded
  case phoneChanged
  /// What a provider says of a change of its factor.
  case factor(FactorNotice)
  /// The same where it says nothing, by the name that people know it by.
  case factorSet(String)
  case factorChanged(String)
  case factorRemoved(String)

  /// What has happened, in one sentence without an end.
  private var event: String {
    switch self {
    case .newDevice: "Somebody signed in to your account on a new device"
    case .locked(let duration?): "Signing in to your account is locked for \(duration.spokenLength) after too many wrong tries"
    case .locked(nil): "Signing in to your account was turned off after too many wrong tries"
    case .emailChanged: "The email address of your account was changed"
    case .phoneAdded: "A phone number was added to your account"
    case .phoneChanged: "The phone number of your account was changed"
    case .factor(let notice): notice.event
    case .factorSet(let title): "\"\(title)\" was set up for your account"
    case .factorChanged(let title): "\"\(title)\" of your account was changed"
    case .factorRemoved(let title): "\"\(title)\" of your account was turned off"
    }
  }

  /// The subject of a mail.
  package func subject(service: String) -> String {
    let subject =
      switch self {
      case .newDevice: "New sign-in"
      case .locked: "Too many wrong tries"
      case .emailChanged: "Email address changed"
      case .phoneAdded: "Phone number added"
      case .phoneChanged: "Phone number changed"
      case .factor(let notice): notice.subject
      case .factorSet(let title): "\(title) set up"
      case .factorChanged(let title): "\(title) changed"
      case .factorRemoved(let title): "\(title) turned off"
      }
    return "\(service): \(subject)"
  }

  /// The whole text; the same for mail and SMS. It holds no link: people shall not learn to follow one.
  package func text(service: String) -> String {
    "\(service): \(event). If this was not you, please sign in, look at your account, and contact us."
  }
}

import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore

/// What `moongate init` asks, each answer judged as it is given.
struct SetupAnswers {
  /// How people reach the gateway.
  let publicURL: PublicURL
  /// The service that the gateway protects.
  let upstream: PublicURL
  let store: Store
  let messages: Messages

  /// Where state lies.
  enum Store: Equatable {
    case sqlite
    /// - Parameter isSecret: whether there is a password in it.
    case postgres(url: String, isSecret: Bool)
  }

  /// How messages leave.
  enum Messages: Equatable {
    case smtp(host: String, port: Int, user: String?, password: String?, from: String)
    case twilio(account: String, token: String, from: String)
    case webhook(url: String)

    /// The provider whose codes leave that way.
    var provider: ProviderName { if case .smtp = self { Providers.mailCodes } else { Providers.smsCodes } }
  }

  /// Why an answer is none: a sentence.
  struct Problem: Error {
    let sentence: String
  }

  static func publicURL(_ text: String) throws(Problem) -> PublicURL {
    guard let url = OriginText.parse(text) else {
      throw Problem(
        sentence:
          "\"\(text)\" is no address such as https://auth.example.com: scheme, host and port, and nothing behind them.")
    }
    guard url.isSecure || url.isLoopback else {
      throw Problem(sentence: "\(url) is not encrypted: codes and cookies could be read on the way. Use https.")
    }
    return url
  }

  static func upstream(_ text: String) throws(Problem) -> PublicURL {
    guard let url = OriginText.parse(text) else {
      throw Problem(
        sentence:
          "\"\(text)\" is no service such as http://127.0.0.1:3000: scheme, host and port, and nothing behind them.")
    }
    return url
  }

  static func store(_ text: String) throws(Problem) -> Store {
    if text == "sqlite" { return .sqlite }
    guard text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") else {
      throw Problem(sentence: "That is no store: answer sqlite, or postgres://user@host/database.")
    }
    // Not a piece of it is said again: there may be a password in it.
    if let problem = OpenedStore.problem(ofPostgres: text) {
      throw Problem(sentence: "The connection string \(problem).")
    }
    let authority = text.split(separator: "/", omittingEmptySubsequences: true).dropFirst().first ?? ""
    let isSecret =
      authority.split(separator: "@").count > 1 && authority.split(separator: "@")[0].contains(":")
      || text.contains("password=")
    return .postgres(url: text, isSecret: isSecret)
  }

  /// - Parameter host: of `public_url`, for the address that mail comes from.
  static func messages(_ text: String, host: String) throws(Problem) -> Messages {
    let usage =
      "That is no way for messages to leave: answer smtp://user:password@mail.example.com:587, twilio://ACCOUNT:TOKEN@+15550100, "
      + "or the https:// address of a site that takes messages as JSON."
    guard let parts = URLComponents(string: text), let name = parts.host, !name.isEmpty else {
      throw Problem(sentence: usage)
    }
    switch parts.scheme {
    case "smtp", "smtps":
      guard (parts.user == nil) == (parts.password == nil) else {
        throw Problem(sentence: "A mail server takes a user and a password, or neither: smtp://user:password@\(name).")
      }
      let from =
        parts.queryItems?.first { $0.name == "from" }?.value ?? "no-reply@\(host == "localhost" ? "example.com" : host)"
      guard MailSender(from) != nil else {
        throw Problem(sentence: "\"\(from)\" is no address that mail can come from.")
      }
      let port = parts.port ?? (parts.scheme == "smtps" ? 465 : parts.user == nil ? 25 : 587)
      return .smtp(host: name, port: port, user: parts.user, password: parts.password, from: from)
    case "twilio":
      guard let account = parts.user, let token = parts.password else { throw Problem(sentence: usage) }
      return .twilio(account: account, token: token, from: name)
    case "https", "http": return .webhook(url: text)
    default: throw Problem(sentence: usage)
    }
  }
}

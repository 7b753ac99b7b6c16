import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK
import MoongateStore

/// The validated answers to the questions of `moongate init`.
struct SetupAnswers {
  /// The public URL of the gateway.
  let publicURL: PublicURL
  /// The service that the gateway protects.
  let upstream: PublicURL
  let store: Store
  let messages: Messages

  /// The kind of store.
  enum Store: Equatable {
    case sqlite
    /// - isSecret: whether the URL contains a password.
    case postgres(url: String, isSecret: Bool)
  }

  /// How messages are sent.
  enum Messages: Equatable {
    case smtp(host: String, port: Int, user: String?, password: String?, from: String)
    case twilio(account: String, token: String, from: String)
    case webhook(url: String)

    /// The provider whose codes are sent this way.
    var provider: ProviderName { if case .smtp = self { Providers.mailCodes } else { Providers.smsCodes } }
  }

  /// The port of the public listener: 8080, as in the systemd socket, unless the service has it.
  var listenPort: Int { port(8080) }

  /// The port of the admin listener: 9901, as in the systemd socket, unless the service has it.
  var adminPort: Int { port(9901) }

  /// The port, or the next one if the service on this machine has it.
  private func port(_ usual: Int) -> Int { upstream.isLoopback && upstream.port == usual ? usual + 1 : usual }

  /// Whether passkeys work at the public URL. Browsers refuse them for an IP address (WebAuthn Level 3 section 5.1.3).
  var hasPasskeys: Bool {
    !publicURL.host.hasPrefix("[") && IPAddressText.parse(Array(publicURL.host.utf8)) == nil
  }

  /// The second factors that work at the public URL.
  var secondFactors: [ProviderName] { Providers.secondFactors.filter { hasPasskeys || $0 != Providers.passkeys } }

  /// The region of phone numbers without + if no option sets it; nil if no message goes to a phone.
  var defaultRegion: String? { messages.provider == Providers.smsCodes ? "IN" : nil }

  /// Why an answer is invalid, as a sentence.
  struct Problem: Error {
    let sentence: String
  }

  static func publicURL(_ text: String) throws(Problem) -> PublicURL {
    guard let url = PublicURL(parsing: text) else {
      throw Problem(
        sentence:
          "\"\(text)\" is not a public URL. Use scheme, host and port only, for example https://auth.example.com.")
    }
    guard url.isSecure || url.isLoopback else {
      throw Problem(sentence: "\(url) is not encrypted: others could read codes and cookies. Use https.")
    }
    return url
  }

  /// - Parameters:
  ///   - text: a URL, or only `host:port` or the port of a service on this machine.
  ///   - gateway: the public URL, which cannot be the service's too.
  static func upstream(_ text: String, gateway: PublicURL) throws(Problem) -> PublicURL {
    let isPort = !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    let place = isPort ? "127.0.0.1:\(text)" : text
    let full = HostName(place)?.port.map { "\($0 == 443 ? "https" : "http")://\(place)" } ?? text
    guard let url = PublicURL(parsing: full) else {
      throw Problem(
        sentence:
          "\"\(text)\" is not the URL of a service. Use scheme, host and port only, for example http://127.0.0.1:3000.")
    }
    let isSameHost = url.host == gateway.host || url.isLoopback && gateway.isLoopback
    guard !isSameHost || url.port != gateway.port else {
      throw Problem(
        sentence: "\(url) is the gateway itself, whose public URL is \(gateway). Use the address at which the gateway "
          + "reaches the service, for example http://127.0.0.1:3000.")
    }
    return url
  }

  static func store(_ text: String) throws(Problem) -> Store {
    if text == "sqlite" { return .sqlite }
    guard text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") else {
      throw Problem(sentence: "That is not a store. Answer sqlite, or postgres://user@host/database.")
    }
    // The message does not repeat the answer, which may contain a password.
    let address: PostgresAddress
    do { address = try PostgresAddress(text) } catch {
      throw Problem(sentence: "The connection string \(error).")
    }
    guard address.isComplete else {
      throw Problem(sentence: "The store needs a host and a database: postgres://user@host/database.")
    }
    let authority = text.split(separator: "/", omittingEmptySubsequences: true).dropFirst().first ?? ""
    let isSecret =
      authority.split(separator: "@").count > 1 && authority.split(separator: "@")[0].contains(":")
      || text.contains("password=")
    return .postgres(url: text, isSecret: isSecret)
  }
}

extension SetupAnswers {
  /// A problem of the written configuration, with the option that sets its field.
  static func sentence(for problem: ConfigurationProblem) -> String {
    let field = problem.path.split(separator: ".").first.map(String.init) ?? ""
    let option = [
      "public_url": "--public-url", "store": "--store", "key": "--state", "region": "--region", "service": "--service",
      "providers": "--messages",
    ][field]
    guard let option else { return "\(problem)" }
    return "\(option): \(problem.path) \(problem.message)"
  }
}

import Foundation
import MoongateCore
import MoongateSDK

extension SetupAnswers {
  private static let messagesUsage =
    "That is not a message service. Answer smtp://user:password@mail.example.com:587, twilio://ACCOUNT:TOKEN@+15550100, "
    + "or the https:// URL of a webhook that accepts messages as JSON."

  /// Parses how messages are sent.
  ///
  /// Attack: a sentence that repeats the answer shows a password on a terminal that others see. No sentence does.
  /// - Parameter host: the host of `public_url`, for the sender address of mail.
  static func messages(_ text: String, host: String) throws(Problem) -> Messages {
    guard let url = MessageURL(text) else { throw Problem(sentence: messagesUsage) }
    switch url.scheme {
    case "smtp", "smtps": return try smtp(url, host: host)
    case "twilio": return try twilio(url)
    case "https", "http": return try webhook(url, text)
    default: throw Problem(sentence: messagesUsage)
    }
  }

  private static func smtp(_ url: MessageURL, host: String) throws(Problem) -> Messages {
    let from = try sender(url)
    let login = try url.login()
    guard let server = HostName(url.place) else { throw Problem(sentence: messagesUsage) }
    guard (login.user == nil) == (login.password == nil) else {
      throw Problem(
        sentence: "A mail server needs both user and password, or neither: smtp://user:password@\(server.name).")
    }
    // A mail service usually accepts only the user's own address as the sender.
    let usual = login.user.flatMap { MailSender.isAddress($0) ? $0 : nil }
    let sender = from ?? usual ?? "no-reply@\(host == "localhost" ? "example.com" : host)"
    guard MailSender(sender) != nil else {
      throw Problem(
        sentence: "\"\(sender)\" is not a valid sender address. Append the sender: ?from=no-reply@example.com.")
    }
    let port = server.port ?? (url.scheme == "smtps" ? 465 : login.user == nil ? 25 : 587)
    return .smtp(host: server.name, port: port, user: login.user, password: login.password, from: sender)
  }

  /// The address of `?from=`, the only thing that may follow the mail server; nil if nothing follows.
  private static func sender(_ url: MessageURL) throws(Problem) -> String? {
    if url.rest.isEmpty || url.rest == "/" { return nil }
    let query = url.rest.hasPrefix("/?") ? url.rest.dropFirst() : url.rest
    if query.hasPrefix("?from="), !query.contains("&"), !query.contains("#") {
      guard let from = query.dropFirst(6).removingPercentEncoding else {
        throw Problem(sentence: "The sender after ?from= has an invalid % sequence. Write a % itself as %25.")
      }
      return from
    }
    throw ending(url, allowed: "Only ?from=login@example.com may follow its host and port")
  }

  private static func twilio(_ url: MessageURL) throws(Problem) -> Messages {
    guard url.rest.isEmpty || url.rest == "/" else { throw ending(url, allowed: "Nothing may follow the sender") }
    let login = try url.login()
    guard let account = login.user, let token = login.password, let from = url.place.removingPercentEncoding,
      !from.isEmpty
    else { throw Problem(sentence: messagesUsage) }
    // Attack: the sentence does not repeat the account, because a hurried user may have written the token there.
    guard TwilioSettings.isAccountSID(account) else {
      throw Problem(
        sentence: "The account of the twilio:// URL must be an account SID: AC and 32 characters, as in "
          + "twilio://ACCOUNT:TOKEN@+15550100.")
    }
    return .twilio(account: account, token: token, from: from)
  }

  /// - Parameter text: the whole URL.
  private static func webhook(_ url: MessageURL, _ text: String) throws(Problem) -> Messages {
    // Attack: everybody on this machine can read gateway.lua, which takes a secret in `headers` but not in `url`.
    guard url.userinfo == nil, !url.rest.contains(where: { "?#@".contains($0) }) else {
      throw Problem(
        sentence: "A webhook's URL must have no user, @, query or fragment, because a key in it would be readable in "
          + "gateway.lua. Leave it out, and then send the key as a header: add "
          + "headers = { [\"Authorization\"] = file \"secrets/webhook\" } to webhook in gateway.lua.")
    }
    guard let host = HostName(url.place) else { throw Problem(sentence: messagesUsage) }
    // Attack: anyone on the way reads the codes.
    guard url.scheme == "https" || Loopback.isAddress(host.name) else {
      throw Problem(
        sentence:
          "The webhook at \(host.name) would receive codes unencrypted. Use https://, or http:// on this machine.")
    }
    return .webhook(url: text)
  }

  /// Why a URL cannot end as it does. A part of an unescaped password may have been taken for a path.
  /// - Parameter allowed: what may follow, as the beginning of a sentence.
  private static func ending(_ url: MessageURL, allowed: String) -> Problem {
    Problem(
      sentence: "The \(url.scheme):// URL has a path, a query or a fragment that has no meaning. \(allowed). "
        + MessageURL.escapes)
  }
}

/// The parts of a URL that says how messages are sent, before percent-decoding.
private struct MessageURL {
  let scheme: Substring
  /// The user and the password; nil without an `@`.
  let userinfo: Substring?
  /// The host and the port, or the sender of `twilio://`.
  let place: String
  /// The path, the query and the fragment.
  let rest: Substring
  /// Whether more than one `@` comes before the rest.
  private let hasSecondAt: Bool

  static let escapes = "In a password, write / as %2F, @ as %40, ? as %3F, # as %23 and % as %25."

  /// - Returns: nil without `://`, or without a host.
  init?(_ text: String) {
    guard let separator = text.range(of: "://") else { return nil }
    scheme = text[..<separator.lowerBound]
    let authority = text[separator.upperBound...].prefix { !"/?#".contains($0) }
    rest = text[authority.endIndex...]
    let parts = authority.split(separator: "@", omittingEmptySubsequences: false)
    userinfo = parts.count > 1 ? parts[0] : nil
    hasSecondAt = parts.count > 2
    place = String(parts.last ?? "")
    guard !place.isEmpty else { return nil }
  }

  /// The user and the password, decoded. An empty one counts as missing.
  func login() throws(SetupAnswers.Problem) -> (user: String?, password: String?) {
    guard let userinfo else { return (nil, nil) }
    let parts = userinfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard !hasSecondAt, let user = parts[0].removingPercentEncoding,
      let password = parts.count > 1 ? parts[1].removingPercentEncoding : ""
    else {
      throw SetupAnswers.Problem(
        sentence: "The user or the password of the \(scheme):// URL has an unescaped @ or %. \(Self.escapes)")
    }
    return (user.isEmpty ? nil : user, password.isEmpty ? nil : password)
  }
}

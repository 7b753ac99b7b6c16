import MoongateSDK

/// A delivery channel for messages, as gateway.lua configures it.
package enum DeliverySettings: Sendable, Equatable {
  /// Stores messages in memory and shows them on the admin listener, for demos and tests.
  case outbox
  case smtp(SMTPSettings)
  case webhook(WebhookSettings)
  case twilio(TwilioSettings)
}

/// `smtp { … }`: a mail server (RFC 5321).
package struct SMTPSettings: Sendable, Equatable {
  /// When the connection switches to TLS.
  package enum Encryption: Sendable, Equatable {
    /// From the first byte (RFC 8314 section 3.3).
    case implicit
    /// By STARTTLS before any message; nothing is sent without it (RFC 3207).
    case required
    /// Never: for a server on the same machine.
    case none
  }

  /// An IPv6 address is in brackets.
  package let host: String
  package let port: Int
  package let encryption: Encryption
  package let from: MailSender
  /// Set if and only if `password` is set.
  package let user: SecretText?
  package let password: SecretText?
  /// A PEM file of trusted certificate authorities to use instead of the system's.
  package let authority: String?
  /// The name of this gateway in EHLO: a host name or an address literal (RFC 5321 section 4.1.3).
  package let helo: String

  /// More than five parameters: one for each field.
  package init(
    host: String, port: Int, encryption: Encryption, from: MailSender, user: SecretText? = nil,
    password: SecretText? = nil, authority: String? = nil, helo: String
  ) {
    self.host = host
    self.port = port
    self.encryption = encryption
    self.from = from
    self.user = user
    self.password = password
    self.authority = authority
    self.helo = helo
  }

  /// The name in EHLO of a host: itself, or the literal of an address.
  /// - Parameter host: a host name or an IP address; an IPv6 address with or without brackets.
  package static func helo(for host: String) -> String {
    let bare = IPAddressBytes.withoutBrackets(host)
    if IPAddressBytes.parseV4(bare.utf8) != nil { return "[\(bare)]" }
    return IPAddressBytes.parseV6(bare.utf8) == nil ? host : "[IPv6:\(bare)]"
  }
}

/// `webhook { … }`: an operator's endpoint that accepts messages as JSON.
package struct WebhookSettings: Sendable, Equatable {
  /// A header that each request to the endpoint has.
  package struct Header: Sendable, Equatable {
    package let name: String
    package let value: SecretText

    package init(name: String, value: SecretText) {
      self.name = name
      self.value = value
    }
  }

  /// http or https.
  package let url: String
  package let headers: [Header]

  package init(url: String, headers: [Header] = []) {
    self.url = url
    self.headers = headers
  }
}

/// `twilio { … }`: Twilio's Messages API or a compatible one.
package struct TwilioSettings: Sendable, Equatable {
  /// The default URL.
  package static let usualURL = "https://api.twilio.com"

  /// Without a trailing slash.
  package let url: String
  /// The account SID, `AC…`.
  package let account: String
  package let token: SecretText
  /// A number in E.164 format, a sender name, or a messaging service (`MG…`).
  package let from: String

  /// Whether the text has the form of an account SID. Twilio's own have 32 characters after `AC`.
  package static func isAccountSID(_ text: String) -> Bool { text.wholeMatch(of: /AC[0-9A-Za-z]{2,62}/) != nil }

  package init(url: String = TwilioSettings.usualURL, account: String, token: SecretText, from: String) {
    self.url = url
    self.account = account
    self.token = token
    self.from = from
  }
}

/// The sender of emails.
package struct MailSender: Sendable, Equatable {
  /// The display name; nil for the address alone.
  package let name: String?
  package let address: String

  /// Parses `no-reply@example.com` or `Moongate <no-reply@example.com>`.
  /// - Returns: nil if the address is not valid in an email.
  package init?(_ text: String) {
    if text.hasSuffix(">"), let open = text.lastIndex(of: "<") {
      let name = text[..<open].split(separator: " ").joined(separator: " ")
      self.name = name.isEmpty ? nil : name
      address = String(text[text.index(after: open)...].dropLast())
    } else {
      name = nil
      address = text
    }
    guard Self.isAddress(address), name?.unicodeScalars.allSatisfy({ $0.value >= 32 && $0.value != 127 }) ?? true else {
      return nil
    }
  }

  /// The part after the last `@`.
  package var domain: Substring { address[address.index(after: address.lastIndex(of: "@") ?? address.startIndex)...] }

  /// Whether the text is a valid address between `<` and `>` in an email and its envelope (RFC 5321 section 4.1.2,
  /// ASCII only).
  ///
  /// Attack: an address with a line break, or with `>` and more after it, that injects headers or recipients.
  package static func isAddress(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count <= 254, let at = bytes.lastIndex(of: UInt8(ascii: "@")), (1...64).contains(at) else {
      return false
    }
    let isWord: (UInt8) -> Bool = {
      (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
    }
    let domain = bytes[(at + 1)...]
    let edges = [domain.first, domain.last]
    guard edges.allSatisfy({ $0.map(isWord) ?? false }),
      domain.allSatisfy({ isWord($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") })
    else { return false }
    let local = bytes[..<at]
    if local.first == UInt8(ascii: "\"") { return isQuoted(local) }
    let marks = Set("!#$%&'*+-/=?^_`{|}~.".utf8)
    return local.allSatisfy { isWord($0) || marks.contains($0) }
  }

  private static func isQuoted(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard bytes.count >= 3, bytes.last == UInt8(ascii: "\"") else { return false }
    var escaped = false
    for byte in bytes.dropFirst().dropLast() {
      guard (0x20...0x7e).contains(byte) else { return false }
      if escaped {
        escaped = false
      } else if byte == UInt8(ascii: "\\") {
        escaped = true
      } else if byte == UInt8(ascii: "\"") {
        return false
      }
    }
    return !escaped
  }
}

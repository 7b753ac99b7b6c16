/// A way for messages to leave, as gateway.lua says it.
package enum DeliverySettings: Sendable, Equatable {
  /// Kept in memory and shown on the admin listener, for demos and tests.
  case outbox
  case smtp(SMTPSettings)
  case webhook(WebhookSettings)
  case twilio(TwilioSettings)
}

/// `smtp { … }`: a mail server (RFC 5321).
package struct SMTPSettings: Sendable, Equatable {
  /// When the connection becomes TLS.
  package enum Encryption: Sendable, Equatable {
    /// From its first byte (RFC 8314 section 3.3).
    case implicit
    /// By STARTTLS before anything else is said, or nothing is sent (RFC 3207).
    case required
    /// Not at all: for a server on the same machine.
    case none
  }

  /// An address in brackets where it is IPv6.
  package let host: String
  package let port: Int
  package let encryption: Encryption
  package let from: MailSender
  /// Both or neither.
  package let user: SecretText?
  package let password: SecretText?
  /// A PEM file of the authorities that may have signed the server's certificate, in place of the system's.
  package let authority: String?

  package init(
    host: String, port: Int, encryption: Encryption, from: MailSender, user: SecretText? = nil,
    password: SecretText? = nil, authority: String? = nil
  ) {
    self.host = host
    self.port = port
    self.encryption = encryption
    self.from = from
    self.user = user
    self.password = password
    self.authority = authority
  }
}

/// `webhook { … }`: a site of the operator's that takes messages as JSON.
package struct WebhookSettings: Sendable, Equatable {
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

/// `twilio { … }`: its Messages API, or one that speaks like it.
package struct TwilioSettings: Sendable, Equatable {
  /// Where nothing else is said.
  package static let usualURL = "https://api.twilio.com"

  /// Without a slash at its end.
  package let url: String
  /// `AC…`.
  package let account: String
  package let token: SecretText
  /// A number in E.164, a name, or a messaging service (`MG…`).
  package let from: String

  package init(url: String = TwilioSettings.usualURL, account: String, token: SecretText, from: String) {
    self.url = url
    self.account = account
    self.token = token
    self.from = from
  }
}

/// Who mails are from.
package struct MailSender: Sendable, Equatable {
  /// As people see it; nil where there is the address alone.
  package let name: String?
  package let address: String

  /// Reads `no-reply@example.com` or `Moongate <no-reply@example.com>`.
  /// - Returns: nil where the address cannot stand in a mail.
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

  /// What follows the last `@`.
  package var domain: Substring { address[address.index(after: address.lastIndex(of: "@") ?? address.startIndex)...] }

  /// Whether the text can stand between `<` and `>` in a mail and its envelope (RFC 5321 section 4.1.2, in ASCII).
  ///
  /// Attack: an address with a line end, or with `>` and more behind it, that writes headers or recipients of its own.
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

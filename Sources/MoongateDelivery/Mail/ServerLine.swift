import Foundation
import MoongateCore
import MoongateSDK

/// A reply line of a mail server, for the log.
///
/// Attack: the log and the events contain no addresses and no codes, but servers repeat the recipient, or parts of a
/// mail that they refuse. A line could also contain control characters.
struct ServerLine {
  private static let maxLength = 200

  let text: String

  /// - Parameter message: the message that was refused.
  init(_ line: String, about message: Message) {
    var text = String(
      line.unicodeScalars.map { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) ? " " : Character($0) })
    let secrets = [(message.link ?? "", "link"), (message.to, "recipient"), (message.code ?? "", "code")]
    for (secret, word) in secrets where !secret.isEmpty {
      text = text.replacingOccurrences(of: secret, with: "(\(word))", options: .caseInsensitive)
    }
    self.text = String(text.prefix(Self.maxLength))
  }
}

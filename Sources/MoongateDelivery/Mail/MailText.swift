import MoongateCore

/// ASCII encodings of text in mail.
enum MailText {
  private static let hex = Array("0123456789ABCDEF".utf8)

  /// Quoted-printable (RFC 2045 section 6.7), in lines of at most 76 characters with CR LF.
  static func quotedPrintable(_ text: String) -> [UInt8] {
    var out: [UInt8] = []
    for line in lines(text) {
      var length = 0
      for (index, byte) in line.enumerated() {
        let isBlank = byte == 0x20 || byte == 0x09
        let isPlain = (0x21...0x7e).contains(byte) && byte != UInt8(ascii: "=") || isBlank && index < line.count - 1
        if length + (isPlain ? 1 : 3) > 75 {
          out += "=\r\n".utf8
          length = 0
        }
        // Encode a leading dot: a server that does not undo dot-stuffing would end the mail there.
        if isPlain, length > 0 || byte != UInt8(ascii: ".") {
          out.append(byte)
          length += 1
        } else {
          out += [UInt8(ascii: "="), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
          length += 3
        }
      }
      out += "\r\n".utf8
    }
    return out
  }

  /// The text of a header, if necessary as folded encoded words (RFC 2047). Control characters become spaces.
  ///
  /// Attack: a name or subject with a line break injects a header.
  static func header(_ text: String) -> String {
    let clean = String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.value < 32 || $0.value == 127 || isBreak($0) ? " " : $0 }.prefix(200)))
    if clean.utf8.allSatisfy({ $0 < 0x80 }), !clean.contains("=?") { return clean }
    var words: [[UInt8]] = [[]]
    for scalar in clean.unicodeScalars {
      let bytes = Array(String(scalar).utf8)
      let isWord =
        bytes.count == 1
        && bytes.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) }
      let written =
        isWord
        ? bytes
        : bytes == [0x20]
          ? [UInt8(ascii: "_")] : bytes.flatMap { [UInt8(ascii: "="), hex[Int($0 >> 4)], hex[Int($0 & 15)]] }
      // An encoded word has at most 75 characters; a character is never split between words.
      if words[words.count - 1].count + written.count > 52 { words.append([]) }
      words[words.count - 1] += written
    }
    return words.map { "=?utf-8?q?\(String(decoding: $0, as: UTF8.self))?=" }.joined(separator: "\r\n ")
  }

  /// The display name of an address (RFC 5322 section 3.4).
  static func displayName(_ name: String) -> String {
    let header = header(name)
    if header.hasPrefix("=?utf-8?q?") { return header }
    return "\"" + header.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }

  /// A date like `Fri, 20 Nov 2026 12:15:00 +0000` (RFC 5322 section 3.3).
  static func date(_ moment: Timestamp) -> String { moment.fixdate.replacing("GMT", with: "+0000") }

  /// Line and paragraph separators, which some clients treat as line breaks.
  private static func isBreak(_ scalar: Unicode.Scalar) -> Bool { [0x85, 0x2028, 0x2029].contains(scalar.value) }

  /// Splits text at LF, CR or CR LF. Other control characters are removed.
  static func lines(_ text: String) -> [[UInt8]] {
    var lines: [[UInt8]] = [[]]
    var before: UInt8 = 0
    for byte in text.utf8 {
      switch byte {
      case 0x0a where before == 0x0d: break
      case 0x0a, 0x0d: lines.append([])
      case 0x09, 0x20...0x7e, 0x80...: lines[lines.count - 1].append(byte)
      default: break
      }
      before = byte
    }
    return lines
  }
}

import HTTPTypes

extension HTTPFields {
  /// The values of the cookies with this name (RFC 6265, section 5.4).
  func cookies(_ name: String) -> [String] {
    let prefix = "\(name)="
    let pairs = self[values: .cookie].flatMap { line in line.split(separator: ";") }
    return pairs.compactMap { pair in
      let plain = pair.drop { $0 == " " }
      return plain.hasPrefix(prefix) ? String(plain.dropFirst(prefix.count)) : nil
    }
  }
}

import NIOCore

/// The head of a request as it was received: its bytes, and where in them the parts lie.
package struct RequestHead: Sendable {
  /// The methods that are treated apart.
  package enum Method: UInt8, Sendable {
    case get, head, options, other
  }

  /// From the first byte of the request line to the end of the empty line.
  package internal(set) var bytes = ByteBuffer()
  package internal(set) var fields: [HeadField] = []
  package internal(set) var method: Method = .other
  package internal(set) var methodEnd = 0
  /// The target as it was sent.
  package internal(set) var target = 0..<0
  /// The authority of an absolute target; nil for a target that is a path.
  package internal(set) var authority: Range<Int>?
  /// Empty where an absolute target has none: `/` is meant.
  package internal(set) var path = 0..<0
  /// Behind the `?`; nil without one.
  package internal(set) var query: Range<Int>?
  /// 0 or 1.
  package internal(set) var minorVersion: UInt8 = 1
  package internal(set) var framing = BodyFraming.none
  /// The value of the one Host field.
  package internal(set) var host = 0..<0
  /// Whether the connection may carry another request after this one.
  package internal(set) var keepsAlive = true
  /// Whether `Connection` names `upgrade` and there is an Upgrade field.
  package internal(set) var wantsUpgrade = false
  /// Whether `Connection` names fields of its own, which then end here.
  package internal(set) var connectionNamesFields = false
  /// Whether the client waits for a 100 before it sends the body.
  package internal(set) var expectsContinue = false

  package init() {}

  /// The name of the method.
  package var methodName: Range<Int> { 0..<methodEnd }

  /// The first field of the kind.
  package func first(_ kind: FieldKind) -> HeadField? { fields.first { $0.kind == kind } }

  /// How many fields there are of the kind.
  package func count(of kind: FieldKind) -> Int { fields.reduce(0) { $1.kind == kind ? $0 + 1 : $0 } }

  /// The bytes in the range as text; what is not UTF-8 is replaced.
  package func text(_ range: Range<Int>) -> String {
    let span = bytes.readableBytesUInt8Span
    var copy: [UInt8] = []
    copy.reserveCapacity(range.count)
    for index in range { copy.append(span[index]) }
    return String(decoding: copy, as: UTF8.self)
  }

  /// Whether some protocol that Upgrade names is HTTP again: `h2c`, `HTTP/2.0`, or `TLS/1.0` with HTTP within (RFC
  /// 2817).
  var asksForAnotherHTTP: Bool {
    fields.contains { field in
      field.kind == .upgrade
        && text(field.value).lowercased().split(separator: ",").contains { item in
          ["h2c", "h2", "http", "tls"].contains(item.prefix { $0 != "/" }.filter { $0 != " " && $0 != "\t" })
        }
    }
  }

  /// What the client says it is; nil where it does not say.
  var userAgent: String? { first(named: "user-agent") }

  /// The languages that its reader wants, as `Accept-Language` has them; nil where that is longer than any reader's
  /// wish.
  var languages: String? { first(named: "accept-language").flatMap { $0.utf8.count <= 256 ? $0 : nil } }

  /// - Parameter name: in lower case, of no kind of its own.
  private func first(named name: StaticString) -> String? {
    fields.first { $0.kind == .other && ByteClass.equal(bytes.readableBytesUInt8Span, $0.name, name) }.map {
      text($0.value)
    }
  }

  /// The names of fields that belong to this connection only (RFC 9110 section 7.6.1); empty where there are none.
  func fieldsOfConnection(_ bytes: Span<UInt8>) -> [Range<Int>] {
    connectionNamesFields ? ConnectionOptions.names(in: fields, of: bytes) : []
  }
}

/// How long a message's body is (RFC 9112 section 6.3).
package enum BodyFraming: Sendable, Equatable {
  case none
  /// Bytes, 0 or more.
  case length(Int)
  case chunked
  /// Responses only: all that comes until the connection closes.
  case untilClose
}

/// What the options of Connection fields say.
struct ConnectionOptions {
  /// Attack: thousands of options beside thousands of fields, each of which is looked for among them: seconds of work
  /// for one request.
  private static let most = 64

  var close = false
  var keepAlive = false
  var upgrade = false
  /// Names of fields.
  var others = false
  private var count = 0

  /// Whether there are more of them than anybody has a use for.
  var isTooLong: Bool { count > Self.most }

  /// Reads one field's value.
  mutating func read(_ bytes: Span<UInt8>, _ value: Range<Int>) {
    count += 1
    for index in value where bytes[index] == UInt8(ascii: ",") { count += 1 }
    Self.forEachOption(bytes, value) { option in
      if ByteClass.equal(bytes, option, "keep-alive") {
        keepAlive = true
      } else if ByteClass.equal(bytes, option, "close") {
        close = true
      } else if ByteClass.equal(bytes, option, "upgrade") {
        upgrade = true
      } else {
        others = true
      }
    }
  }

  /// The options of the Connection fields among these.
  static func names(in fields: [HeadField], of bytes: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    for field in fields where field.kind == .connection { forEachOption(bytes, field.value) { found.append($0) } }
    return found
  }

  /// Whether the field is one of those that the options name.
  static func isNamed(_ field: HeadField, by options: [Range<Int>], _ bytes: Span<UInt8>) -> Bool {
    let name = field.name
    return options.contains { option in
      guard option.count == name.count else { return false }
      for offset in 0..<option.count
      where ByteClass.lower(bytes[option.lowerBound + offset]) != ByteClass.lower(bytes[name.lowerBound + offset]) {
        return false
      }
      return true
    }
  }

  private static func forEachOption(_ bytes: Span<UInt8>, _ value: Range<Int>, _ body: (Range<Int>) -> Void) {
    var start = value.lowerBound
    while start < value.upperBound {
      var end = start
      while end < value.upperBound, bytes[end] != UInt8(ascii: ",") { end += 1 }
      let option = ByteClass.trimmed(bytes, start..<end)
      if !option.isEmpty { body(option) }
      start = end + 1
    }
  }
}

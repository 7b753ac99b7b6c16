import MoongateCore
import NIOCore

/// The head of a request: its received bytes, and the positions of its parts in them.
package struct RequestHead: Sendable {
  /// The methods that the gateway distinguishes.
  package enum Method: UInt8, Sendable {
    case get, head, options, other
  }

  /// The request line, the fields and the empty line.
  package internal(set) var bytes = ByteBuffer()
  package internal(set) var fields: [HeadField] = []
  package internal(set) var method: Method = .other
  package internal(set) var methodEnd = 0
  /// The target as received.
  package internal(set) var target = 0..<0
  /// The authority of an absolute target; nil for a target that is a path.
  package internal(set) var authority: Range<Int>?
  /// The path. Empty for an absolute target without a path, which means `/`.
  package internal(set) var path = 0..<0
  /// The query after `?`; nil without `?`.
  package internal(set) var query: Range<Int>?
  /// The minor version of HTTP/1: 0 or 1.
  package internal(set) var minorVersion: UInt8 = 1
  package internal(set) var framing = BodyFraming.none
  /// The value of the only Host field; nil if an HTTP/1.0 request has none.
  package internal(set) var host: Range<Int>?
  /// Whether the request is about the server itself, not one of its resources: `OPTIONS *` (RFC 9110 section 9.3.7).
  package internal(set) var isAboutServer = false
  /// Whether the connection can be used for another request after this one.
  package internal(set) var keepsAlive = true
  /// Whether the request has an Upgrade field, and `Connection` contains `upgrade`.
  package internal(set) var wantsUpgrade = false
  /// Whether `Connection` names other fields, which are not forwarded then.
  package internal(set) var connectionNamesFields = false
  /// Whether a browser asks for the script of a service worker.
  package internal(set) var isForServiceWorker = false
  /// Whether the client accepts trailers (RFC 9110 section 10.1.4).
  package internal(set) var acceptsTrailers = false
  /// Whether the client waits for `100 Continue` before it sends the body.
  package internal(set) var expectsContinue = false

  package init() {}

  /// The position of the method.
  package var methodName: Range<Int> { 0..<methodEnd }

  /// Whether the method is idempotent (RFC 9110 section 9.2.2): the service may be asked twice.
  var isIdempotent: Bool {
    if method != .other { return true }
    let span = bytes.readableBytesUInt8Span
    return ByteClass.equalCase(span, methodName, "PUT") || ByteClass.equalCase(span, methodName, "DELETE")
  }

  /// The first field of the kind.
  package func first(_ kind: FieldKind) -> HeadField? { fields.first { $0.kind == kind } }

  /// The number of fields of the kind.
  package func count(of kind: FieldKind) -> Int { fields.reduce(0) { $1.kind == kind ? $0 + 1 : $0 } }

  /// The bytes in the range as text. Invalid UTF-8 is replaced by U+FFFD.
  package func text(_ range: Range<Int>) -> String {
    let span = bytes.readableBytesUInt8Span
    var copy: [UInt8] = []
    copy.reserveCapacity(range.count)
    for index in range { copy.append(span[index]) }
    return String(decoding: copy, as: UTF8.self)
  }

  /// The positions of the forwarding headers.
  var forwardingFields: ForwardingFields {
    var found = ForwardingFields()
    for field in fields {
      switch field.kind {
      case .forwardedFor: found.addresses.append(field.value)
      case .forwardedProto: found.schemes.append(field.value)
      case .forwardedHost: found.hosts.append(field.value)
      default: break
      }
    }
    return found
  }

  /// Whether a browser opens a page with the request (`NavigationHeaders`).
  var isNavigation: Bool {
    let span = bytes.readableBytesUInt8Span
    var headers = NavigationHeaders()
    for field in fields where field.kind == .other || field.kind == .accept {
      headers.read(span.extracting(field.name), span.extracting(field.value))
    }
    return headers.isNavigation
  }

  /// Which page the request comes from, for the cookies of frames.
  var frameRequest: FrameRequest {
    let span = bytes.readableBytesUInt8Span
    var request = FrameRequest()
    for field in fields where field.kind == .other {
      request.read(span.extracting(field.name), span.extracting(field.value))
    }
    return request
  }

  /// Whether `Accept` names text/html, so that the client can be shown a page.
  var acceptsHTML: Bool {
    let span = bytes.readableBytesUInt8Span
    return fields.contains { $0.kind == .accept && AcceptHeader.containsHTML(span.extracting($0.value)) }
  }

  /// Whether Upgrade names a protocol that contains HTTP: `h2c`, `HTTP/2.0`, or `TLS/1.0` (RFC 2817).
  var asksForAnotherHTTP: Bool {
    fields.contains { field in
      field.kind == .upgrade
        && text(field.value).lowercased().split(separator: ",").contains { item in
          ["h2c", "h2", "http", "tls"].contains(item.prefix { $0 != "/" }.filter { $0 != " " && $0 != "\t" })
        }
    }
  }

  /// Whether the request is a call of gRPC. Either side of a call may be silent for long.
  var isCall: Bool {
    let span = bytes.readableBytesUInt8Span
    return fields.contains { $0.isCallType(span) }
  }

  /// The value of `User-Agent`; nil if the field is missing.
  var userAgent: String? { first(named: "user-agent") }

  /// The value of `Sec-Fetch-Site` (Fetch Metadata), by which a browser tells what kind of site a request comes from;
  /// nil if the field is missing.
  var fetchSite: String? { first(named: "sec-fetch-site") }

  /// The value of `Accept-Language`; nil if the field is missing or longer than 256 bytes.
  var languages: String? { first(named: "accept-language").flatMap { $0.utf8.count <= 256 ? $0 : nil } }

  /// - Parameter name: a name in lower case without its own `FieldKind`.
  private func first(named name: StaticString) -> String? {
    fields.first { $0.kind == .other && ByteClass.equal(bytes.readableBytesUInt8Span, $0.name, name) }.map {
      text($0.value)
    }
  }

  /// The names of the fields that `Connection` names, which are not forwarded (RFC 9110 section 7.6.1).
  func fieldsOfConnection(_ bytes: Span<UInt8>) -> [Range<Int>] {
    connectionNamesFields ? ConnectionOptions.names(in: fields, of: bytes) : []
  }
}

/// How the length of a message body is determined (RFC 9112 section 6.3).
package enum BodyFraming: Sendable, Equatable {
  case none
  /// The number of bytes, 0 or more.
  case length(Int)
  case chunked
  /// For responses only: the body ends when the connection closes.
  case untilClose
}

/// The options of all `Connection` fields of a message.
struct ConnectionOptions {
  /// The maximum number of options. Attack: every field is compared with every option, so thousands of both would cost
  /// seconds of work for one request.
  private static let maximum = 64

  var close = false
  var keepAlive = false
  var upgrade = false
  /// Whether an option is the name of a field.
  var others = false
  private var count = 0

  /// Whether the number of options exceeds the maximum.
  var isTooLong: Bool { count > Self.maximum }

  /// Adds the options of one field value.
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

  /// The options of all `Connection` fields in the list.
  static func names(in fields: [HeadField], of bytes: Span<UInt8>) -> [Range<Int>] {
    var found: [Range<Int>] = []
    for field in fields where field.kind == .connection { forEachOption(bytes, field.value) { found.append($0) } }
    return found
  }

  /// Whether an option names the field.
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

  /// Whether the list of tokens contains the text. `lowered` must be in lower case.
  static func contains(_ bytes: Span<UInt8>, _ value: Range<Int>, _ lowered: StaticString) -> Bool {
    var isThere = false
    forEachOption(bytes, value) { if ByteClass.equal(bytes, $0, lowered) { isThere = true } }
    return isThere
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

import Foundation
import MoongateCore

/// The parts of a request head for the access log, copied so that the head need not be kept.
struct LoggedHead {
  /// Method, host and path, concatenated.
  var bytes: [UInt8] = []
  var methodEnd = 0
  var hostEnd = 0
  /// Whether a head was copied.
  var isThere = false

  private static let maxPathLength = 1024

  /// Copies the head without the query, which may contain secrets.
  mutating func take(_ head: borrowing RequestHead, _ source: Span<UInt8>) {
    bytes.removeAll(keepingCapacity: true)
    isThere = true
    for index in head.methodName.prefix(32) { bytes.append(source[index]) }
    methodEnd = bytes.count
    for index in (head.host ?? 0..<0).prefix(255) { bytes.append(source[index]) }
    hostEnd = bytes.count
    if head.path.isEmpty { bytes.append(UInt8(ascii: "/")) }
    for index in head.path.prefix(Self.maxPathLength) { bytes.append(source[index]) }
  }
}

/// The access log lines of one event loop since they were last handed over.
struct AccessLines {
  private(set) var bytes: [UInt8] = []
  private(set) var count = 0
  private var second: Int64 = -1
  private var secondText: [UInt8] = []

  /// The data of one line.
  struct Entry {
    var at: Timestamp
    var client: ClientAddress
    var wire: EventLoopMetrics.HTTPVersion
    var status: Int
    var outcome: Outcome
    var answerBytes: Int
    var nanoseconds: Int64
    var route: String
    var account: String?
    var decision: String?
    var trace: TraceContext?
  }

  mutating func take() -> (bytes: [UInt8], count: Int) {
    defer {
      bytes = []
      count = 0
    }
    return (bytes, count)
  }

  /// Appends a line. Client values are escaped byte by byte. Attack: a line break in a path would forge a log line.
  mutating func add(_ head: LoggedHead, _ entry: Entry) {
    count += 1
    text("{\"time\":\"")
    time(entry.at)
    if head.isThere {
      text("\",\"method\":\"")
      escape(head.bytes[..<head.methodEnd])
      text("\",\"host\":\"")
      escape(head.bytes[head.methodEnd..<head.hostEnd])
      text("\",\"path\":\"")
      path(head.bytes[head.hostEnd...])
    }
    text("\",\"protocol\":\"")
    text(entry.wire == .http1 ? "http/1.1" : "h2")
    text("\",\"status\":")
    number(entry.status)
    text(",\"bytes\":")
    number(entry.answerBytes)
    text(",\"ms\":")
    number(Int(entry.nanoseconds / 1_000_000))
    text(".")
    padded(Int(entry.nanoseconds / 1000 % 1000))
    text(",\"outcome\":\"")
    bytes += entry.outcome.name.utf8
    text("\",\"route\":\"")
    escape(Array(entry.route.utf8)[...])
    text("\",\"client\":\"")
    bytes += entry.client.description.utf8
    if let account = entry.account {
      text("\",\"account\":\"")
      escape(Array(account.utf8)[...])
    }
    if let decision = entry.decision {
      text("\",\"decision\":\"")
      bytes += decision.utf8
    }
    if let trace = entry.trace {
      text("\",\"trace\":\"")
      TraceContext.hex(trace.high) { bytes.append($0) }
      TraceContext.hex(trace.low) { bytes.append($0) }
      text("\",\"span\":\"")
      TraceContext.hex(trace.span) { bytes.append($0) }
    }
    text("\"}\n")
  }

  private mutating func text(_ text: StaticString) {
    bytes += UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }

  private mutating func number(_ value: Int) { bytes += String(value).utf8 }

  private mutating func padded(_ value: Int) {
    for divisor in [100, 10, 1] { bytes.append(UInt8(ascii: "0") + UInt8(value / divisor % 10)) }
  }

  /// Appends a time like `2026-11-21T02:00:00.123Z`. The part up to the second is formatted once per second.
  private mutating func time(_ at: Timestamp) {
    if at.seconds != second {
      second = at.seconds
      let text = Date(timeIntervalSince1970: Double(second)).formatted(.iso8601)
      secondText = Array(text.utf8.prefix { $0 != UInt8(ascii: "Z") })
    }
    bytes += secondText
    text(".")
    padded(Int(at.milliseconds - second * 1000))
    text("Z")
  }

  /// Attack: a reader of the log takes over a flow. A flow id is a secret of its client, so only its prefix is logged.
  private mutating func path(_ path: ArraySlice<UInt8>) {
    var rest = path
    while let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
      segment(rest[..<slash])
      bytes.append(UInt8(ascii: "/"))
      rest = rest[(slash + 1)...]
    }
    segment(rest)
  }

  private mutating func segment(_ segment: ArraySlice<UInt8>) {
    let isFlow = segment.count > 11 && segment.starts(with: [UInt8(ascii: "f"), UInt8(ascii: "l"), UInt8(ascii: "_")])
    escape(isFlow ? segment.prefix(11) : segment)
    if isFlow { text("...") }
  }

  private mutating func escape(_ slice: ArraySlice<UInt8>) {
    for byte in slice {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(byte)
      case 0x20..<0x7f: bytes.append(byte)
      default:
        text("\\u00")
        for digit in [byte >> 4, byte & 15] { bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
      }
    }
  }
}

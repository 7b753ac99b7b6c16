import MoongateCore
import NIOCore
import NIOEmbedded
import NIOHPACK

@testable import MoongateProxy

/// An HTTP/2 connection to an upstream whose frames the test reads and writes, on an event loop whose clock it
/// controls.
///
/// Use without an `await`, which could change the thread: an embedded channel is bound to its thread.
final class EmbeddedUpstream {
  typealias Frame = EmbeddedStreams.Frame

  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  let channel: EmbeddedChannel
  let connection: UpstreamHTTP2
  let target: UpstreamTarget
  let pool: UpstreamHTTP2Pool
  private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
  private var decoder = HPACKDecoder(
    allocator: ByteBufferAllocator(), maxDynamicTableSize: 4096, maxHeaderListSize: 1024 * 1024)
  private var lengths: [Int] = []
  private var hasPreface = false

  /// - Parameters:
  ///   - target: nil for a target of its own.
  ///   - settings: the parameters and values of the upstream's first SETTINGS frame; nil if it sends none.
  init(
    of target: UpstreamTarget? = nil, on channel: EmbeddedChannel = EmbeddedChannel(),
    settings: [(UInt16, UInt32)]? = []
  ) throws {
    self.channel = channel
    var upstream = Upstream(isSecure: false, host: "192.0.2.2", port: 2)
    upstream.usesHTTP2 = true
    let used =
      target ?? UpstreamTarget(upstream, eventLoop: channel.eventLoop, tls: UpstreamTLS(), spare: SpareFields())
    self.target = used
    pool = used.http2 ?? UpstreamHTTP2Pool(used)
    connection = UpstreamHTTP2(target: used, pool: pool, eventLoop: channel.eventLoop, ready: nil)
    try channel.pipeline.syncOperations.addHandler(connection)
    channel.connect(to: try SocketAddress(ipAddress: "192.0.2.2", port: 2), promise: nil)
    pool.add(connection)
    if let settings { try answer(EmbeddedStreams.settings(settings)) }
  }

  /// A new exchange on the connection.
  /// - Parameter hasBody: whether a body follows.
  func ask(_ path: String = "/x", _ more: String = "", hasBody: Bool = false) throws -> RecordedExchange {
    let exchange = RecordedExchange(connection.makeStream())
    let method = hasBody ? "POST" : more.hasPrefix("HEAD") ? "HEAD" : "GET"
    exchange.stream.begin(for: exchange, toHead: method == "HEAD", wantsUpgrade: false, hasBody: hasBody)
    let fields = more.hasPrefix("HEAD") ? String(more.dropFirst(4)) : more
    exchange.stream.write(ByteBuffer(string: "\(method) \(path) HTTP/1.1\r\nHost: h\r\n\(fields)\r\n"))
    exchange.stream.flush()
    return exchange
  }

  /// The frames that the gateway has sent since the last call, without the preface.
  func frames() throws -> [Frame] {
    channel.embeddedEventLoop.run()
    var bytes: [UInt8] = []
    while let part = try channel.readOutbound(as: ByteBuffer.self) { bytes += part.readableBytesView }
    if !hasPreface, bytes.starts(with: Self.preface) {
      hasPreface = true
      bytes.removeFirst(Self.preface.count)
    }
    return try EmbeddedStreams.parse(bytes, by: &decoder, lengths: &lengths)
  }

  /// The frames of the kinds HEADERS, DATA, RST_STREAM and GOAWAY, in a short form.
  func asked() throws -> [String] {
    try frames().compactMap { frame in
      let end = frame.flags & 1 != 0 ? " end" : ""
      switch frame.type {
      case 0: return "\(frame.stream) '\(frame.text)'\(end)"
      case 1: return "\(frame.stream) \(frame.fields.joined(separator: " "))\(end)"
      case 3: return "\(frame.stream) reset \(frame.code)"
      case 7: return "goaway \(frame.code)"
      default: return nil
      }
    }
  }

  func answer(_ bytes: [UInt8]) throws { try channel.writeInbound(ByteBuffer(bytes: bytes)) }

  /// A HEADERS frame.
  func head(
    _ stream: Int, _ status: String? = "200", _ more: [(String, String)] = [], end: Bool = false
  ) throws -> [UInt8] {
    var block = ByteBuffer()
    let fields = (status.map { [(":status", $0)] } ?? []) + more
    try encoder.encode(headers: HPACKHeaders(fields), to: &block)
    return EmbeddedStreams.frame(1, flags: end ? 5 : 4, stream: stream, Array(block.readableBytesView))
  }

  static func code(_ type: UInt8, stream: Int = 0, _ code: UInt8) -> [UInt8] {
    EmbeddedStreams.frame(type, stream: stream, [0, 0, 0, code])
  }

  static func goAway(last: UInt8, _ code: UInt8, _ text: String = "") -> [UInt8] {
    EmbeddedStreams.frame(7, [0, 0, 0, last, 0, 0, 0, code] + text.utf8)
  }

  func end() { _ = try? channel.finish(acceptAlreadyClosed: true) }
}

/// An exchange that notes what it gets of a stream.
final class RecordedExchange: UpstreamClient {
  let stream: UpstreamStream
  var takesAnswer = true
  private(set) var events: [String] = []
  /// How often the stream accepted bytes again, and how often it was said to flush.
  private(set) var rooms = 0
  private(set) var flushes = 0
  /// Whether the failure allows any request to be sent again.
  private(set) var isUnhandled = false

  init(_ stream: UpstreamStream) { self.stream = stream }

  func upstreamWritabilityChanged() { rooms += 1 }
  func answerInterim(_ status: Int) { events.append("\(status)") }

  func answerBegan(_ head: ResponseHead, by connection: UpstreamConnection) {
    let bytes = head.bytes.readableBytesUInt8Span
    var text = "\(head.status)"
    for field in head.fields {
      text += " "
      for index in field.name { text.unicodeScalars.append(Unicode.Scalar(bytes[index])) }
      text += "="
      for index in field.value { text.unicodeScalars.append(Unicode.Scalar(bytes[index])) }
    }
    switch head.framing {
    case .none: break
    case .length(let length): text += " (\(length))"
    case .chunked: text += " (chunked)"
    case .untilClose: text += " (until close)"
    }
    events.append(text)
  }

  func answerData(_ data: ByteBuffer) { events.append("'\(String(buffer: data))'") }
  func flushAnswer() { flushes += 1 }
  func answerTrailers(_ lines: ByteBuffer) { events.append("trailers \(String(buffer: lines).debugDescription)") }

  func answerEnded(by connection: UpstreamConnection) {
    events.append("end")
    connection.end(reusable: true)
  }

  func tunnelBegan(_ head: ResponseHead, by connection: UpstreamConnection) { events.append("tunnel") }
  func tunnelRead(_ bytes: ByteBuffer) {}
  func tunnelEnded() {}

  func upstreamFailed(_ failure: UpstreamFailure, _ connection: UpstreamConnection) {
    isUnhandled = connection.isUnhandled
    events.append("failed: \(failure.reason ?? "closed")")
    connection.close()
  }
}

import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOTLS

@testable import MoongateProxy

/// An HTTP/2 connection, and a connection to the upstream of the gateway's first route, on one event loop whose clock
/// the test controls.
///
/// Use without an `await`, which could change the thread: an embedded channel is bound to its thread.
final class EmbeddedStreams {
  /// A frame that the gateway has sent. The frames of a head are one frame.
  struct Frame: Equatable {
    var type: UInt8
    var flags: UInt8
    var stream: Int
    var payload: [UInt8]
    /// The fields of a head, such as `:status=200`.
    var fields: [String] = []

    /// The four bytes of a code or a window, such as the error of RST_STREAM. GOAWAY has them after another number.
    var code: Int { payload.suffix(type == 7 ? payload.count - 4 : 4).prefix(4).reduce(0) { $0 << 8 | Int($1) } }
    var text: String { String(decoding: payload, as: UTF8.self) }
  }

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  let channel = EmbeddedChannel()
  private(set) var upstream: EmbeddedChannel?
  private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
  private var decoder = HPACKDecoder(
    allocator: ByteBufferAllocator(), maxDynamicTableSize: 4096, maxHeaderListSize: 1024 * 1024)
  private var block = ByteBuffer()
  /// The payload lengths of all frames that the gateway has sent.
  private(set) var lengths: [Int] = []

  /// - Parameters:
  ///   - settings: the parameters and values of the client's first SETTINGS frame.
  ///   - header: a PROXY protocol header before the handshake; empty if the gateway takes none.
  init(
    _ gateway: TestGateway, settings: [(UInt16, UInt32)] = [], header: [UInt8] = [],
    inner: @escaping @Sendable (any Channel) throws -> Void = { _ in }
  ) throws {
    let loop = gateway.proxy.loop(for: channel.eventLoop)
    let addTLS = { [channel] (permit: ConnectionPermit?) in
      try channel.pipeline.syncOperations.addHandler(TLSHandshakeHandler(loop: loop, permit: permit, inner: inner))
    }
    if header.isEmpty {
      try addTLS(nil)
    } else {
      try channel.pipeline.syncOperations.addHandler(ProxyProtocolHandler(loop: loop, addHandlers: addTLS))
    }
    channel.connect(to: try SocketAddress(ipAddress: "192.0.2.1", port: 1), promise: nil)
    if !header.isEmpty { try channel.writeInbound(ByteBuffer(bytes: header)) }
    channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: "h2"))
    if let target = loop.currentPlan().routes.first?.targets.first {
      let connection = UpstreamHTTP1(target: target, spare: loop.spare, ready: nil)
      let upstream = EmbeddedChannel(handler: connection, loop: channel.embeddedEventLoop)
      upstream.connect(to: try SocketAddress(ipAddress: "192.0.2.2", port: 2), promise: nil)
      target.putIdle(connection)
      self.upstream = upstream
    }
    try send(Self.preface + Self.settings(settings))
  }

  // MARK: the client

  func send(_ bytes: [UInt8]) throws { try channel.writeInbound(ByteBuffer(bytes: bytes)) }

  static func frame(_ type: UInt8, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8] = []) -> [UInt8] {
    let length = payload.count
    return [UInt8(length >> 16), UInt8(length >> 8 & 255), UInt8(length & 255), type, flags]
      + [UInt8(stream >> 24), UInt8(stream >> 16 & 255), UInt8(stream >> 8 & 255), UInt8(stream & 255)] + payload
  }

  static func settings(_ values: [(UInt16, UInt32)]) -> [UInt8] {
    var payload = ByteBuffer()
    for (parameter, value) in values {
      payload.writeInteger(parameter)
      payload.writeInteger(value)
    }
    return frame(4, Array(payload.readableBytesView))
  }

  /// A HEADERS frame. A field named like a pseudo-header of the defaults replaces it.
  func head(
    _ stream: Int, _ method: String = "GET", path: String = "/../x", _ more: [(String, String)] = [],
    end: Bool = true
  ) throws -> [UInt8] {
    var fields = [(":method", method), (":scheme", "https"), (":authority", "h"), (":path", path)]
    for field in more {
      if let index = fields.firstIndex(where: { $0.0 == field.0 && field.0.hasPrefix(":") }) {
        fields[index] = field
      } else {
        fields.append(field)
      }
    }
    var block = ByteBuffer()
    try encoder.encode(headers: HPACKHeaders(fields), to: &block)
    return Self.frame(1, flags: end ? 5 : 4, stream: stream, Array(block.readableBytesView))
  }

  func trailers(_ stream: Int, _ value: String = "a") throws -> [UInt8] {
    var block = ByteBuffer()
    try encoder.encode(headers: HPACKHeaders([("x-trailer", value)]), to: &block)
    return Self.frame(1, flags: 5, stream: stream, Array(block.readableBytesView))
  }

  static func data(_ stream: Int, _ text: String, end: Bool = false) -> [UInt8] {
    frame(0, flags: end ? 1 : 0, stream: stream, Array(text.utf8))
  }

  /// The frames that the gateway has sent since the last call.
  func frames() throws -> [Frame] {
    // Frames outside of a read are flushed in the next turn.
    channel.embeddedEventLoop.run()
    var bytes: [UInt8] = []
    while let part = try channel.readOutbound(as: ByteBuffer.self) { bytes += part.readableBytesView }
    return try Self.parse(bytes, by: &decoder, lengths: &lengths)
  }

  /// The frames in the bytes. The lengths of their payloads are appended to the list.
  static func parse(_ bytes: [UInt8], by decoder: inout HPACKDecoder, lengths: inout [Int]) throws -> [Frame] {
    var found: [Frame] = []
    var index = 0
    while index + 9 <= bytes.count {
      let length = bytes[index..<index + 3].reduce(0) { $0 << 8 | Int($1) }
      let stream = bytes[index + 5..<index + 9].reduce(0) { $0 << 8 | Int($1) }
      var frame = Frame(
        type: bytes[index + 3], flags: bytes[index + 4], stream: stream,
        payload: Array(bytes[index + 9..<min(index + 9 + length, bytes.count)]))
      index += 9 + length
      lengths.append(length)
      if frame.type == 9, var head = found.popLast() {
        head.payload += frame.payload
        head.flags |= frame.flags
        frame = head
      }
      if frame.type == 1, frame.flags & 4 != 0 {
        var block = ByteBuffer(bytes: frame.payload)
        frame.fields = try decoder.decodeHeaders(from: &block).map { "\($0.name)=\($0.value)" }
      }
      found.append(frame)
    }
    return found
  }

  // MARK: the upstream

  /// The bytes that the upstream has received since the last call.
  func asked() throws -> String {
    var text = ""
    while let bytes = try upstream?.readOutbound(as: ByteBuffer.self) { text += String(buffer: bytes) }
    return text
  }

  func answer(_ text: String) throws { _ = try upstream?.writeInbound(ByteBuffer(string: text)) }

  func end() { for channel in [channel, upstream] { _ = try? channel?.finish(acceptAlreadyClosed: true) } }
}

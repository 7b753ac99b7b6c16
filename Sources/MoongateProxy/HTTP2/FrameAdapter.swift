import NIOCore
import NIOHTTP2

/// Adapts the frames of a connection where the library cannot do what RFC 9113 requires or allows.
///
/// - The library applies the gateway's SETTINGS when the client acknowledges them (section 6.5.3). Most clients send
///   their first request earlier: with a head over NIO's default of 16 KiB it would close the connection instead of
///   being answered, with 431 if necessary. All our values are at least the defaults, so the acknowledgement is
///   simulated when the client's own SETTINGS arrive, and the client's later one is removed.
/// - The library writes no CONTINUATION frames (section 6.10), and fails for a head that is larger than a frame. It is
///   told that the client accepts frames of any size. The frames of a large head are made here.
/// - The library's table of header compression is as large as the client allows. The client's limit is lowered.
/// - To the library, too many streams are an error of the connection, not of the stream (section 5.1.2). It is told a
///   larger limit than the client, and `HTTP2Connection` refuses the streams between.
/// - To the library, trailers of a stream that it has reset are an error of the connection, although they were on their
///   way (section 5.1). Here, a client can be told of a reset before the library is (`reset`).
/// - To the library, a PRIORITY frame of a wrong length is an error of the connection, not of the stream (section 6.3).
///   Priorities are deprecated (section 5.3.2) and not used, so PRIORITY frames are dropped.
/// - To the library, frames of a stream that the client opened before it knew of a GOAWAY are an error of the
///   connection (section 6.8). All but its heads, which the header compression needs, are dropped
///   (`HTTP2Shutdown.lastServed`).
/// - The library waits for all bytes of the preface. A wrong one is refused at its first wrong byte.
final class FrameAdapter: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The size of the library's table of header compression: the default of RFC 9113 section 6.5.2.
  ///
  /// Attack: a client allows 4 GiB. Each response with a new header then takes memory until the connection ends, and
  /// the table is searched for every header.
  private static let maxTable: UInt32 = 4096
  /// The values that SETTINGS_MAX_FRAME_SIZE may have.
  private static let frameSizes: ClosedRange<UInt32> = 16_384...16_777_215
  /// The length of a PRIORITY frame.
  private static let priorityLength = 5

  /// The connection preface (RFC 9113 section 3.4).
  private static let magic = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  /// Parameters of SETTINGS frames (RFC 9113 section 6.5.2).
  private enum Parameter {
    static let headerTableSize: UInt16 = 1
    static let maxConcurrentStreams: UInt16 = 3
    static let maxFrameSize: UInt16 = 5
    /// The length of a parameter and its value.
    static let length = 6
  }

  /// The limit of concurrent streams that the client is told.
  private let maxStreams: Int
  private var hasPreface = false
  private var isRefused = false
  /// The remaining bytes of the preface or of the current frame, which are passed on as they are.
  private var left = 0
  /// Whether the remaining bytes are dropped instead.
  private var drops = false
  /// Whether a header block is open: until its end, only CONTINUATION may follow.
  private var isInHeaderBlock = false
  /// How the connection ends. Frames of streams that are not served are dropped here; `HTTP2Connection` does the rest.
  var shutdown = HTTP2Shutdown()
  /// Received bytes that wait for the rest of a frame header, or of a SETTINGS or PRIORITY frame.
  private var held = ByteBuffer()
  /// Whether the client's first SETTINGS have arrived.
  private var hasSettings = false
  /// Whether the client's acknowledgement has arrived, of which the library knows already.
  private var isAcknowledged = false
  /// Whether the library has written the gateway's SETTINGS, its first frame.
  private var settingsAreWritten = false
  private var context: ChannelHandlerContext?
  /// Streams of whose reset only the client knows.
  private var resetStreams: Set<UInt32> = []
  /// Streams that got a PRIORITY frame of a wrong length in the current read.
  private(set) var malformedPriorities: [UInt32] = []
  /// Whether the library's next write is the payload of a DATA frame, whose header it has written.
  private var isPayloadNext = false

  init(maxStreams: Int) { self.maxStreams = maxStreams }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  // MARK: resets

  /// Resets a stream for the client. The library is to reset it too, later, and its frames for the stream are dropped.
  func reset(_ stream: HTTP2StreamID, _ code: HTTP2ErrorCode) {
    guard let context else { return }
    let head = FrameHead(length: 4, type: FrameHead.rstStream, flags: 0, stream: UInt32(Int(stream)))
    resetStreams.insert(head.stream)
    var frame = ByteBuffer()
    head.write(to: &frame)
    frame.writeInteger(UInt32(code.networkCode))
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
  }

  /// The library has closed the stream.
  func forget(_ stream: HTTP2StreamID) {
    if !resetStreams.isEmpty { resetStreams.remove(UInt32(Int(stream))) }
  }

  /// Whether the library's write is a frame of a stream that is reset for the client.
  private func isDropped(_ bytes: ByteBuffer) -> Bool {
    if isPayloadNext {
      isPayloadNext = false
      return false
    }
    guard let head = FrameHead(bytes, at: 0) else { return false }
    isPayloadNext = head.type == FrameHead.data
    return head.type == FrameHead.rstStream || head.type == FrameHead.windowUpdate
      ? resetStreams.contains(head.stream) : false
  }

  // MARK: from the client

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRefused else { return }
    var bytes = unwrapInboundIn(data)
    if held.readableBytes > 0 {
      held.writeBuffer(&bytes)
      bytes = held
      held = ByteBuffer()
    }
    if !hasPreface {
      let begin = bytes.readableBytesView.prefix(Self.magic.count)
      guard begin.elementsEqual(Self.magic.prefix(begin.count)) else { return refuse(context) }
      guard begin.count == Self.magic.count else {
        held = bytes
        return
      }
      hasPreface = true
      left = Self.magic.count
    }
    passFrames(&bytes, context)
    if bytes.readableBytes > 0 { held = bytes }
  }

  /// Returns and removes `malformedPriorities`.
  func takeMalformedPriorities() -> [UInt32] {
    defer { malformedPriorities = [] }
    return malformedPriorities
  }

  /// Passes on all complete bytes, those between two frames that are handled here at once.
  private func passFrames(_ bytes: inout ByteBuffer, _ context: ChannelHandlerContext) {
    // How many bytes are passed on as they are.
    var count = 0
    while true {
      let step = min(left, bytes.readableBytes - count)
      left -= step
      if drops { bytes.moveReaderIndex(forwardBy: step) } else { count += step }
      guard left == 0, let head = FrameHead(bytes, at: count) else { break }
      // Attack: a frame within a header block, which other programs read in another way. The library ends the
      // connection then (section 4.3), so nothing is changed or dropped here.
      let belongsToLibrary = isInHeaderBlock
      if head.type == FrameHead.headers || head.type == FrameHead.continuation {
        isInHeaderBlock = head.flags & FrameHead.endHeaders == 0
      }
      guard !belongsToLibrary else {
        drops = false
        left = FrameHead.size + head.length
        continue
      }
      drops = isUnserved(head)
      if drops {
        pass(count, of: &bytes, context)
        count = 0
        left = FrameHead.size + head.length
        returnWindow(of: head, context)
        continue
      }
      // The library refuses a larger frame without reading it, and priorities of the connection.
      let isSettings = head.type == FrameHead.settings
      guard isSettings || head.type == FrameHead.priority && head.stream != 0, head.length <= FrameHead.maxPayload
      else {
        left = FrameHead.size + head.length
        continue
      }
      guard bytes.readableBytes - count >= FrameHead.size + head.length else { break }
      pass(count, of: &bytes, context)
      count = 0
      guard let frame = bytes.readSlice(length: FrameHead.size + head.length) else { break }
      if isSettings {
        passSettings(frame, head, context)
      } else if head.length != Self.priorityLength {
        malformedPriorities.append(head.stream)
      }
    }
    pass(count, of: &bytes, context)
  }

  private func isUnserved(_ head: FrameHead) -> Bool {
    guard let last = shutdown.lastServed, head.stream > UInt32(Int(last)) else { return false }
    return head.type == FrameHead.data || head.type == FrameHead.rstStream || head.type == FrameHead.windowUpdate
  }

  /// Dropped DATA counts in the client's window of the connection (section 6.8), which other streams need.
  private func returnWindow(of head: FrameHead, _ context: ChannelHandlerContext) {
    guard head.type == FrameHead.data, head.length > 0 else { return }
    var frame = ByteBuffer()
    FrameHead(length: 4, type: FrameHead.windowUpdate, flags: 0, stream: 0).write(to: &frame)
    frame.writeInteger(UInt32(head.length))
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
  }

  private func pass(_ count: Int, of bytes: inout ByteBuffer, _ context: ChannelHandlerContext) {
    guard count > 0, let part = bytes.readSlice(length: count) else { return }
    context.fireChannelRead(wrapInboundOut(part))
  }

  private func passSettings(_ frame: ByteBuffer, _ head: FrameHead, _ context: ChannelHandlerContext) {
    // The library refuses a malformed frame.
    let isWellFormed = head.stream == 0 && head.length.isMultiple(of: Parameter.length)
    if head.flags & FrameHead.acknowledgement != 0 {
      if hasSettings, !isAcknowledged, isWellFormed, head.length == 0 {
        isAcknowledged = true
      } else {
        context.fireChannelRead(wrapInboundOut(frame))
      }
      return
    }
    guard isWellFormed else { return context.fireChannelRead(wrapInboundOut(frame)) }
    var frame = frame
    Self.replaceValues(in: &frame) { parameter, value in
      switch parameter {
      case Parameter.headerTableSize: min(value, Self.maxTable)
      // The library refuses other values.
      case Parameter.maxFrameSize: Self.frameSizes.contains(value) ? Self.frameSizes.upperBound : value
      default: value
      }
    }
    if hasSettings { return context.fireChannelRead(wrapInboundOut(frame)) }
    hasSettings = true
    frame.setFrameLength(head.length + Parameter.length)
    frame.writeInteger(Parameter.maxFrameSize)
    frame.writeInteger(Self.frameSizes.upperBound)
    context.fireChannelRead(wrapInboundOut(frame))
    context.fireChannelRead(wrapInboundOut(FrameHead.settingsAcknowledgement))
  }

  private static func replaceValues(in frame: inout ByteBuffer, _ change: (UInt16, UInt32) -> UInt32) {
    var index = frame.readerIndex + FrameHead.size
    while let (parameter, value) = frame.getMultipleIntegers(at: index, as: (UInt16, UInt32).self) {
      let new = change(parameter, value)
      if new != value { frame.setInteger(new, at: index + 2) }
      index += Parameter.length
    }
  }

  /// Refuses the preface and closes the connection. Attack: a client keeps its connection open with bytes that can
  /// never become a request.
  private func refuse(_ context: ChannelHandlerContext) {
    isRefused = true
    context.writeAndFlush(wrapOutboundOut(FrameHead.protocolError), promise: nil)
    context.close(promise: nil)
  }

  // MARK: from the library

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var bytes = unwrapOutboundIn(data)
    if !settingsAreWritten {
      settingsAreWritten = true
      Self.replaceValues(in: &bytes) { $0 == Parameter.maxConcurrentStreams ? UInt32(maxStreams) : $1 }
      return context.write(wrapOutboundOut(bytes), promise: promise)
    }
    if !resetStreams.isEmpty, isDropped(bytes) {
      promise?.succeed()
      return
    }
    guard bytes.readableBytes > FrameHead.size + FrameHead.maxPayload else {
      return context.write(data, promise: promise)
    }
    context.write(wrapOutboundOut(Self.split(bytes)), promise: promise)
  }

  /// Splits a HEADERS frame. No other frame of the gateway is as large: `StreamFraming` splits DATA.
  private static func split(_ frame: ByteBuffer) -> ByteBuffer {
    guard let head = FrameHead(frame, at: 0), head.type == FrameHead.headers else { return frame }
    var block = frame
    block.moveReaderIndex(forwardBy: FrameHead.size)
    var out = ByteBuffer()
    out.reserveCapacity(frame.readableBytes + (block.readableBytes / FrameHead.maxPayload + 1) * FrameHead.size)
    FrameHead.write(
      block: block, stream: head.stream, isLast: head.flags & FrameHead.endStream != 0, to: &out)
    return out
  }
}

extension ByteBuffer {
  /// Changes the length in the header of the frame that the buffer contains.
  fileprivate mutating func setFrameLength(_ length: Int) {
    guard let word = getInteger(at: readerIndex, as: UInt32.self) else { return }
    setInteger(UInt32(length) << 8 | word & 0xff, at: readerIndex)
  }
}

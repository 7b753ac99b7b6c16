import NIOCore
import NIOHPACK

/// Reads the frames that an upstream sends (RFC 9113 section 4), and decompresses heads.
///
/// It keeps at most one header block. DATA is passed on as it arrives, other frames when they are complete.
struct FrameReader {
  /// A frame, or a part of DATA. PRIORITY and unknown frames are dropped.
  enum Frame {
    /// - `counted`: how many bytes flow control counts, padding included.
    /// - `isLast`: whether the part ends the stream.
    case data(stream: UInt32, bytes: ByteBuffer, counted: Int, isLast: Bool)
    case head(stream: UInt32, HPACKHeaders, isLast: Bool)
    case reset(stream: UInt32, code: UInt32)
    case settings([(parameter: UInt16, value: UInt32)])
    case ping(UInt64)
    /// The answer to a PING of the gateway.
    case pong
    case goAway(last: UInt32, code: UInt32, text: String)
    /// - `increment`: 0 is an error, of the stream or of the connection.
    case window(stream: UInt32, increment: UInt32)
  }

  /// The rest of a DATA frame.
  private struct Data {
    let stream: UInt32
    var left: Int
    var padding: Int
    /// Bytes that count and are neither data nor padding.
    var extra: Int
    let isLast: Bool
  }

  /// A header block whose end has not arrived.
  private struct Block {
    let stream: UInt32
    let isLast: Bool
    var bytes: ByteBuffer
    var frames = 1
  }

  /// The maximum size of a header block, and of the fields in it, each with 32 bytes more (RFC 9113 section 6.5.2).
  static let maxHead = 64 * 1024
  /// Attack: an endless sequence of empty CONTINUATION frames, between which the connection carries nothing else.
  private static let maxBlockFrames = 16

  private var decoder = HPACKDecoder(
    allocator: ByteBufferAllocator(), maxDynamicTableSize: 4096, maxHeaderListSize: FrameReader.maxHead)
  /// Whether the first frame, which must be SETTINGS (RFC 9113 section 3.4), has arrived.
  private var hasSettings = false
  private var data: Data?
  private var block: Block?

  /// Removes the next frame from the front of the input.
  /// - Parameter input: all received bytes that are not yet consumed.
  /// - Returns: nil if more bytes are needed.
  mutating func next(_ input: inout ByteBuffer) throws(FrameFault) -> Frame? {
    while true {
      if data != nil { return readData(&input) }
      guard let head = FrameHead(input, at: 0) else { return nil }
      try check(head)
      if head.type == FrameHead.data {
        guard try beginData(head, &input) else { return nil }
        continue
      }
      guard input.readableBytes >= FrameHead.size + head.length else { return nil }
      input.moveReaderIndex(forwardBy: FrameHead.size)
      guard var payload = input.readSlice(length: head.length) else { return nil }
      if let frame = try read(head, &payload) { return frame }
    }
  }

  private mutating func check(_ head: FrameHead) throws(FrameFault) {
    if !hasSettings {
      guard head.type == FrameHead.settings, head.stream == 0, head.flags & FrameHead.acknowledgement == 0 else {
        throw FrameFault(FrameCode.protocolError, "it does not speak HTTP/2 here")
      }
      hasSettings = true
    }
    guard head.length <= FrameHead.maxPayload else {
      throw FrameFault(FrameCode.frameSizeError, "a frame is larger than 16 KiB")
    }
    // Attack: frames within a header block, which other programs read in another way.
    let belongsToBlock = head.type == FrameHead.continuation
    guard belongsToBlock == (block != nil), !belongsToBlock || head.stream == block?.stream else {
      throw FrameFault(FrameCode.protocolError, "a head is not continued by its next frame")
    }
    switch head.type {
    case FrameHead.data, FrameHead.headers, FrameHead.rstStream:
      guard head.stream != 0 else { throw FrameFault(FrameCode.protocolError, "a frame of a stream has no stream") }
    case FrameHead.settings, FrameHead.ping, FrameHead.goAway:
      guard head.stream == 0 else {
        throw FrameFault(FrameCode.protocolError, "a frame of the connection has a stream")
      }
    case FrameHead.pushPromise: throw FrameFault(FrameCode.protocolError, "it pushes, although that is switched off")
    default: break
    }
  }

  // MARK: DATA

  /// - Returns: false if more bytes are needed.
  private mutating func beginData(_ head: FrameHead, _ input: inout ByteBuffer) throws(FrameFault) -> Bool {
    var padding = 0
    let isPadded = head.flags & FrameHead.padded != 0
    if isPadded, head.length > 0 {
      guard let length = input.getInteger(at: input.readerIndex + FrameHead.size, as: UInt8.self) else { return false }
      padding = Int(length)
    }
    let extra = isPadded ? 1 : 0
    guard padding + extra <= head.length else { throw Self.padding }
    input.moveReaderIndex(forwardBy: FrameHead.size + extra)
    data = Data(
      stream: head.stream, left: head.length - padding - extra, padding: padding, extra: extra,
      isLast: head.flags & FrameHead.endStream != 0)
    return true
  }

  private static let padding = FrameFault(FrameCode.protocolError, "the padding of a frame is longer than the frame")

  private mutating func readData(_ input: inout ByteBuffer) -> Frame? {
    guard var current = data else { return nil }
    let bytes = input.readSlice(length: min(current.left, input.readableBytes)) ?? ByteBuffer()
    current.left -= bytes.readableBytes
    var counted = bytes.readableBytes + current.extra
    current.extra = 0
    if current.left == 0 {
      let dropped = min(current.padding, input.readableBytes)
      input.moveReaderIndex(forwardBy: dropped)
      current.padding -= dropped
      counted += dropped
    }
    let isOver = current.left == 0 && current.padding == 0
    data = isOver ? nil : current
    guard isOver || counted > 0 else { return nil }
    return .data(stream: current.stream, bytes: bytes, counted: counted, isLast: isOver && current.isLast)
  }

  // MARK: other frames

  /// - Parameter payload: the complete payload.
  /// - Returns: nil if nothing follows from the frame yet.
  private mutating func read(_ head: FrameHead, _ payload: inout ByteBuffer) throws(FrameFault) -> Frame? {
    switch head.type {
    case FrameHead.headers:
      try removePadding(head, &payload)
      block = Block(stream: head.stream, isLast: head.flags & FrameHead.endStream != 0, bytes: payload)
      return try endBlock(head)
    case FrameHead.continuation:
      block?.bytes.writeImmutableBuffer(payload)
      block?.frames += 1
      return try endBlock(head)
    case FrameHead.rstStream:
      guard head.length == 4, let code = payload.readInteger(as: UInt32.self) else { throw Self.length }
      return .reset(stream: head.stream, code: code)
    case FrameHead.settings: return try settings(head, &payload)
    case FrameHead.ping:
      guard head.length == 8, let content = payload.readInteger(as: UInt64.self) else { throw Self.length }
      return head.flags & FrameHead.acknowledgement != 0 ? .pong : .ping(content)
    case FrameHead.goAway:
      guard let (last, code) = payload.readMultipleIntegers(as: (UInt32, UInt32).self) else { throw Self.length }
      return .goAway(last: last & 0x7fff_ffff, code: code, text: Self.printable(payload))
    case FrameHead.windowUpdate:
      guard head.length == 4, let increment = payload.readInteger(as: UInt32.self) else { throw Self.length }
      return .window(stream: head.stream, increment: increment & 0x7fff_ffff)
    default: return nil
    }
  }

  private static let length = FrameFault(FrameCode.frameSizeError, "a frame has a wrong length")

  private func removePadding(_ head: FrameHead, _ payload: inout ByteBuffer) throws(FrameFault) {
    var padding = 0
    if head.flags & FrameHead.padded != 0 {
      guard let length = payload.readInteger(as: UInt8.self) else { throw Self.padding }
      padding = Int(length)
    }
    // Stream dependency and weight (RFC 9113 section 5.3.2).
    if head.flags & FrameHead.hasPriority != 0 {
      guard payload.readSlice(length: 5) != nil else { throw Self.length }
    }
    guard padding <= payload.readableBytes else { throw Self.padding }
    payload.moveWriterIndex(to: payload.writerIndex - padding)
  }

  private mutating func endBlock(_ head: FrameHead) throws(FrameFault) -> Frame? {
    guard let current = block else { return nil }
    guard current.bytes.readableBytes <= Self.maxHead, current.frames <= Self.maxBlockFrames else {
      throw FrameFault(FrameCode.enhanceYourCalm, "a head is too large")
    }
    guard head.flags & FrameHead.endHeaders != 0 else { return nil }
    block = nil
    var bytes = current.bytes
    do {
      return .head(stream: current.stream, try decoder.decodeHeaders(from: &bytes), isLast: current.isLast)
    } catch is NIOHPACKErrors.MaxHeaderListSizeViolation {
      throw FrameFault(FrameCode.enhanceYourCalm, "a head is too large")
    } catch {
      throw FrameFault(FrameCode.compressionError, "a head cannot be decompressed")
    }
  }

  private func settings(_ head: FrameHead, _ payload: inout ByteBuffer) throws(FrameFault) -> Frame? {
    if head.flags & FrameHead.acknowledgement != 0 {
      guard head.length == 0 else { throw Self.length }
      return nil
    }
    guard head.length.isMultiple(of: 6) else { throw Self.length }
    var values: [(parameter: UInt16, value: UInt32)] = []
    while let (parameter, value) = payload.readMultipleIntegers(as: (UInt16, UInt32).self) {
      values.append((parameter, value))
    }
    return .settings(values)
  }

  /// The debug data of GOAWAY, as far as a log line may contain it.
  private static func printable(_ bytes: ByteBuffer) -> String {
    String(decoding: bytes.readableBytesView.prefix(100).filter { $0 >= 0x20 && $0 < 0x7f }, as: UTF8.self)
  }
}

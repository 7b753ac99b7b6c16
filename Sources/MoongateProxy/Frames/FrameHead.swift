import NIOCore

/// The header of a frame of HTTP/2 (RFC 9113 section 4.1).
struct FrameHead {
  static let size = 9
  /// The maximum payload of a frame that every peer accepts (RFC 9113 section 4.2).
  static let maxPayload = 16_384

  // Types.
  static let data: UInt8 = 0
  static let headers: UInt8 = 1
  static let priority: UInt8 = 2
  static let rstStream: UInt8 = 3
  static let settings: UInt8 = 4
  static let pushPromise: UInt8 = 5
  static let ping: UInt8 = 6
  static let goAway: UInt8 = 7
  static let windowUpdate: UInt8 = 8
  static let continuation: UInt8 = 9
  // Flags.
  static let acknowledgement: UInt8 = 1
  static let endStream: UInt8 = 1
  static let endHeaders: UInt8 = 4
  static let padded: UInt8 = 8
  static let hasPriority: UInt8 = 0x20

  static let settingsAcknowledgement = ByteBuffer(bytes: [0, 0, 0, 4, 1, 0, 0, 0, 0])
  /// A GOAWAY frame with PROTOCOL_ERROR and last stream 0.
  static let protocolError = ByteBuffer(bytes: [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])

  var length: Int
  var type: UInt8
  var flags: UInt8
  var stream: UInt32

  init(length: Int, type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0) {
    self.length = length
    self.type = type
    self.flags = flags
    self.stream = stream
  }

  /// - Parameter offset: from the first readable byte.
  /// - Returns: nil if the header is incomplete.
  init?(_ bytes: ByteBuffer, at offset: Int) {
    let start = bytes.readerIndex + offset
    guard bytes.readableBytes - offset >= Self.size, let word = bytes.getInteger(at: start, as: UInt32.self),
      let flags = bytes.getInteger(at: start + 4, as: UInt8.self),
      let stream = bytes.getInteger(at: start + 5, as: UInt32.self)
    else { return nil }
    length = Int(word >> 8)
    type = UInt8(truncatingIfNeeded: word)
    self.flags = flags
    self.stream = stream & 0x7fff_ffff
  }

  func write(to out: inout ByteBuffer) {
    out.writeMultipleIntegers(UInt32(length) << 8 | UInt32(type), flags, stream)
  }

  /// Writes a header block as HEADERS and, beyond the maximum payload, CONTINUATION frames.
  /// - Parameter isLast: whether the frames end the stream.
  static func write(block: ByteBuffer, stream: UInt32, isLast: Bool, to out: inout ByteBuffer) {
    var rest = block
    var part = FrameHead(length: 0, type: headers, flags: isLast ? endStream : 0, stream: stream)
    repeat {
      part.length = min(rest.readableBytes, maxPayload)
      if part.length == rest.readableBytes { part.flags |= endHeaders }
      part.write(to: &out)
      if let payload = rest.readSlice(length: part.length) { out.writeImmutableBuffer(payload) }
      part.type = continuation
      part.flags = 0
    } while rest.readableBytes > 0
  }
}

/// The codes of errors (RFC 9113 section 7).
enum FrameCode {
  static let noError: UInt32 = 0
  static let protocolError: UInt32 = 1
  static let internalError: UInt32 = 2
  static let flowControlError: UInt32 = 3
  static let streamClosed: UInt32 = 5
  static let frameSizeError: UInt32 = 6
  static let refusedStream: UInt32 = 7
  static let cancel: UInt32 = 8
  static let compressionError: UInt32 = 9
  static let enhanceYourCalm: UInt32 = 11

  private static let names = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
  ]

  /// The name of a code in a log line.
  static func name(of code: UInt32) -> String { code < names.count ? names[Int(code)] : "error \(code)" }
}

/// Why a connection of HTTP/2 cannot be used any more: an error of the connection (RFC 9113 section 5.4.1).
struct FrameFault: Error, Equatable {
  let code: UInt32
  /// For the operator.
  let reason: String

  init(_ code: UInt32, _ reason: String) {
    self.code = code
    self.reason = reason
  }
}

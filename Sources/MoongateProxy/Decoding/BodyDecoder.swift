import NIOCore

/// Reads the body of a message from the bytes after its head. Trailers are checked and kept.
package struct BodyDecoder: Sendable {
  /// The next part of the body.
  package enum Part: Sendable, Equatable {
    /// More bytes are needed.
    case incomplete
    case data(ByteBuffer)
    /// The body is complete. The remaining bytes belong to the next message.
    case end
  }

  private enum State: Sendable, Equatable {
    case length(Int)
    case chunkSize
    case chunkData(Int)
    case chunkEnd
    /// The trailers, with their length so far, and what each costs.
    case trailers(Int)
    case untilClose
    case end
  }

  /// The maximum length of a chunk's size line with its extensions. Attack: long extensions that only cost work.
  private static let lineLimit = 1024
  /// How many bytes a trailer counts beyond its line. Attack: thousands of tiny trailers, which cost work on every way.
  private static let trailerCost = 32

  private var state: State
  private let isResponse: Bool
  /// The lines of the trailers that have been read; nil if there are none.
  package private(set) var trailers: ByteBuffer?

  /// - Parameter isResponse: whether the message is a response. The size of its chunks may be followed by spaces and
  ///   tabs, as some services send them: the chunks are written anew for the client.
  ///
  ///   Attack (request smuggling): a request is never read so. A program in front of the gateway, which must take the
  ///   same bytes for the size, might not do so.
  package init(_ framing: BodyFraming, isResponse: Bool = false) {
    self.isResponse = isResponse
    switch framing {
    case .none: state = .end
    case .length(let length): state = length == 0 ? .end : .length(length)
    case .chunked: state = .chunkSize
    case .untilClose: state = .untilClose
    }
  }

  /// Whether all of the body has been read.
  package var isAtEnd: Bool { state == .end }
  /// Whether the body ends when the connection closes.
  package var endsByClose: Bool { state == .untilClose }

  /// Removes the next part from the front of the input.
  /// - Throws: a fault if the chunked coding violates RFC 9112 section 7.1.
  package mutating func next(_ input: inout ByteBuffer) throws(MessageFault) -> Part {
    while true {
      switch state {
      case .end: return .end
      case .length(let left):
        guard let data = Self.take(&input, atMost: left) else { return .incomplete }
        state = left == data.readableBytes ? .end : .length(left - data.readableBytes)
        return .data(data)
      case .untilClose:
        guard let data = Self.take(&input, atMost: .max) else { return .incomplete }
        return .data(data)
      case .chunkSize:
        guard let (size, line) = try chunkSize(input.readableBytesUInt8Span) else { return .incomplete }
        input.moveReaderIndex(forwardBy: line)
        state = size == 0 ? .trailers(0) : .chunkData(size)
      case .chunkData(let left):
        guard let data = Self.take(&input, atMost: left) else { return .incomplete }
        state = left == data.readableBytes ? .chunkEnd : .chunkData(left - data.readableBytes)
        return .data(data)
      case .chunkEnd:
        guard try Self.isLineEnd(input.readableBytesUInt8Span, at: 0) else { return .incomplete }
        input.moveReaderIndex(forwardBy: 2)
        state = .chunkSize
      case .trailers(let length):
        guard
          let (line, isLast) = try Self.trailer(
            input.readableBytesUInt8Span, limit: max(0, RequestDecoder.limit - length))
        else { return .incomplete }
        let bytes = input.readSlice(length: line)
        if isLast {
          state = .end
        } else {
          keepTrailer(bytes)
          state = .trailers(length + line + Self.trailerCost)
        }
      }
    }
  }

  private mutating func keepTrailer(_ line: ByteBuffer?) {
    guard let line else { return }
    if trailers == nil { trailers = line } else { trailers?.writeImmutableBuffer(line) }
  }

  private static func take(_ input: inout ByteBuffer, atMost limit: Int) -> ByteBuffer? {
    let length = min(limit, input.readableBytes)
    return length == 0 ? nil : input.readSlice(length: length)
  }

  private static func trailer(_ bytes: Span<UInt8>, limit: Int) throws(MessageFault) -> (length: Int, isLast: Bool)? {
    let isTooLong = bytes.count > limit
    switch try FieldLine.read(isTooLong ? bytes.extracting(0..<limit) : bytes, at: 0) {
    case .incomplete:
      if isTooLong { throw .headTooLarge }
      return nil
    case .end(let end): return (end, true)
    case .field(let field, let next):
      // RFC 9110 section 6.5.1: trailers cannot contain framing fields.
      if field.kind == .contentLength || field.kind == .transferEncoding {
        throw .malformed("a framing field in the trailers")
      }
      return (next, false)
    }
  }

  private static func isLineEnd(_ bytes: Span<UInt8>, at index: Int) throws(MessageFault) -> Bool {
    if index < bytes.count, bytes[index] != 0x0d { throw .malformed("a chunk is longer than its size") }
    guard index + 1 < bytes.count else { return false }
    guard bytes[index + 1] == 0x0a else { throw .malformed("a line ends without CRLF") }
    return true
  }

  /// `chunk-size [chunk-ext] CRLF`, in responses also `chunk-size BWS CRLF`.
  private func chunkSize(_ bytes: Span<UInt8>) throws(MessageFault) -> (size: Int, line: Int)? {
    var index = 0
    var size = 0
    while index < bytes.count {
      let digit = ByteClass.hexValue(bytes[index])
      if digit == 255 { break }
      // Sixteen digits would overflow `Int`.
      guard index < 15 else { throw .malformed("a chunk's size is too large") }
      size = size << 4 | Int(digit)
      index += 1
    }
    guard index < bytes.count else { return nil }
    let isDelimiter = bytes[index] == 0x0d || bytes[index] == UInt8(ascii: ";") || ByteClass.isSpace(bytes[index])
    guard index > 0, isDelimiter else { throw .malformed("a chunk's size is not a hexadecimal number") }
    var end = index
    if isResponse {
      while end < bytes.count, ByteClass.isSpace(bytes[end]) { end += 1 }
    }
    let line =
      end < bytes.count && bytes[end] == 0x0d
      ? try Self.lineEnd(bytes, at: end) : try Self.chunkExtensions(bytes, from: index)
    guard line ?? bytes.count <= Self.lineLimit else { throw .malformed("a chunk's extensions are too long") }
    return line.map { (size, $0) }
  }

  /// - Returns: the offset after the CRLF at the index; nil if it is incomplete.
  private static func lineEnd(_ bytes: Span<UInt8>, at index: Int) throws(MessageFault) -> Int? {
    guard index + 1 < bytes.count else { return nil }
    guard bytes[index + 1] == 0x0a else { throw .malformed("a line ends without CRLF") }
    return index + 2
  }

  /// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] ) CRLF`
  private static func chunkExtensions(_ bytes: Span<UInt8>, from start: Int) throws(MessageFault) -> Int? {
    let count = bytes.count
    var index = start
    var afterName = false
    while true {
      let before = index
      while index < count, ByteClass.isSpace(bytes[index]) { index += 1 }
      guard index < count else { return nil }
      if bytes[index] == 0x0d, index == before { return try lineEnd(bytes, at: index) }
      let isValue = bytes[index] == UInt8(ascii: "=") && afterName
      guard isValue || bytes[index] == UInt8(ascii: ";") else { throw .malformed("a chunk's extensions are malformed") }
      index += 1
      while index < count, ByteClass.isSpace(bytes[index]) { index += 1 }
      guard index < count else { return nil }
      if isValue, bytes[index] == UInt8(ascii: "\"") {
        guard let end = try quotedString(bytes, from: index) else { return nil }
        index = end
      } else {
        let word = index
        while index < count, ByteClass.isToken(bytes[index]) { index += 1 }
        guard index < count else { return nil }
        guard index > word else { throw .malformed("a chunk's extensions are malformed") }
      }
      afterName = !isValue
    }
  }

  /// RFC 9110 section 5.6.4.
  private static func quotedString(_ bytes: Span<UInt8>, from start: Int) throws(MessageFault) -> Int? {
    var index = start + 1
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\""): return index + 1
      case UInt8(ascii: "\\"):
        guard index + 1 < bytes.count else { return nil }
        guard ByteClass.isValue(bytes[index + 1]) else { throw .malformed("a chunk's extensions are malformed") }
        index += 2
      default:
        guard ByteClass.isValue(bytes[index]) else { throw .malformed("a chunk's extensions are malformed") }
        index += 1
      }
    }
    return nil
  }
}

extension ByteBuffer {
  /// The last chunk of a body, with the trailers behind it (RFC 9112 section 7.1.2).
  /// - Parameter trailers: complete lines.
  static func lastChunk(_ trailers: ByteBuffer?) -> ByteBuffer {
    guard let trailers else { return ByteBuffer(staticString: "0\r\n\r\n") }
    var end = ByteBuffer()
    end.reserveCapacity(trailers.readableBytes + 5)
    end.writeStaticString("0\r\n")
    end.writeImmutableBuffer(trailers)
    end.writeStaticString("\r\n")
    return end
  }
}

import NIOCore

extension ByteBuffer {
  /// Appends the range of the bytes.
  @inline(__always)
  mutating func copy(_ bytes: Span<UInt8>, _ range: Range<Int>) { writeBytes(bytes.extracting(range).bytes) }
}

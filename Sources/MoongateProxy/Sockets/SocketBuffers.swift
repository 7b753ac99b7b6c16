import NIOCore

/// The memory bounds of one socket, on either side of an exchange.
///
/// Attack: clients request large responses and read nothing. Each costs the memory of its connection and of its
/// upstream's connection when reading stops: at most `writeLimit` minus one byte, plus one `readSize`. The library's
/// defaults would cost five times as much, because it reads 64 KiB four times in a row and keeps the buffers.
package enum SocketBuffers {
  /// The maximum number of bytes per read.
  static let readSize = 32 * 1024
  /// With this many unsent bytes a socket is not writable; below half of them, it is writable again.
  static let writeLimit = 32 * 1024

  /// Sets the bounds. Call on the channel's event loop.
  package static func bound(_ channel: any Channel) throws {
    guard let options = channel.syncOptions else { return }
    try options.setOption(.maxMessagesPerRead, value: 1)
    try options.setOption(
      .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 2048, maximum: readSize))
    try options.setOption(.writeBufferWaterMark, value: .init(low: writeLimit / 2, high: writeLimit))
  }
}

import NIOCore

/// What one socket may hold in memory, on either side of an exchange.
///
/// Attack: clients that ask for much and take nothing. Each costs what its connection and its upstream's hold when
/// reading stops: at most `writeLimit` less one byte and one `readSize` more. With the library's own bounds it would be
/// five times as much: four reads of 64 KiB are made at a time, and their buffers are kept for the next four.
package enum SocketBuffers {
  /// The most that is read at a time, in bytes.
  static let readSize = 32 * 1024
  /// From here on a socket counts as not taking more, in bytes; below half of it, as taking again.
  static let writeLimit = 32 * 1024

  /// To be called on the channel's event loop.
  package static func bound(_ channel: any Channel) throws {
    guard let options = channel.syncOptions else { return }
    try options.setOption(.maxMessagesPerRead, value: 1)
    try options.setOption(
      .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 2048, maximum: readSize))
    try options.setOption(.writeBufferWaterMark, value: .init(low: writeLimit / 2, high: writeLimit))
  }
}

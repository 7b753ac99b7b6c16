import NIOCore

/// The side of an exchange that asked the upstream: it receives the response and passes it to the client.
protocol UpstreamClient: AnyObject {
  /// Whether the client accepts bytes of the response now. `UpstreamConnection.resumeReading` is called when it does
  /// again.
  var takesAnswer: Bool { get }

  /// The upstream accepts no more bytes of the request, or accepts them again.
  func upstreamWritabilityChanged()

  /// An interim response (1xx) other than 101.
  func answerInterim(_ status: Int)
  func answerBegan(_ head: ResponseHead, by connection: UpstreamConnection)
  func answerData(_ data: ByteBuffer)
  /// Everything that one read of the upstream brought has been passed on.
  func flushAnswer()
  /// The lines of the response's trailers. They come before the last bytes of a body whose head declares its length.
  func answerTrailers(_ lines: ByteBuffer)
  func answerEnded(by connection: UpstreamConnection)

  /// The upstream has switched protocols (101): bytes go both ways from now on.
  func tunnelBegan(_ head: ResponseHead, by connection: UpstreamConnection)
  func tunnelRead(_ bytes: ByteBuffer)
  func tunnelEnded()

  /// The connection ended before the response was complete.
  func upstreamFailed(_ failure: UpstreamFailure, _ connection: UpstreamConnection)
}

extension UpstreamClient {
  func answerTrailers(_ lines: ByteBuffer) {}
}

import NIOCore
import NIOHTTPTypes
import Synchronization

/// The channel between an HTTP/2 stream and the handler for requests to the gateway itself.
///
/// A stream has no channel, but that handler needs one. A complete request for the gateway itself gets this channel:
/// the handler reads the request from it and writes the response to it.
final class StreamChannel: Channel, ChannelCore, @unchecked Sendable {
  // Mutable state is confined to the event loop, except for the two atomic flags.

  let allocator = ByteBufferAllocator()
  let eventLoop: any EventLoop
  let parent: (any Channel)? = nil
  let localAddress: SocketAddress? = nil
  /// Attack: without it, all clients would have one address, and share its limits.
  let remoteAddress: SocketAddress?
  private let closing: EventLoopPromise<Void>
  private let active = Atomic<Bool>(false)
  private let writable = Atomic<Bool>(true)
  private var stream: HTTP2Stream?
  private weak var client: ClientConnection?
  private var isClosed = false

  init(_ stream: HTTP2Stream, _ client: ClientConnection, remoteAddress: SocketAddress?) {
    self.stream = stream
    self.client = client
    self.remoteAddress = remoteAddress
    eventLoop = stream.eventLoop
    closing = stream.eventLoop.makePromise()
    _ = pipeline
  }

  // MARK: from the stream

  func begin() {
    active.store(true, ordering: .relaxed)
    pipeline.fireChannelActive()
  }

  func deliver(_ parts: [HTTPRequestPart]) {
    for part in parts { pipeline.fireChannelRead(part) }
    pipeline.fireChannelReadComplete()
  }

  func writabilityChanged() {
    guard let stream, stream.isWritable != isWritable else { return }
    writable.store(stream.isWritable, ordering: .relaxed)
    pipeline.fireChannelWritabilityChanged()
  }

  /// Called when the stream has ended.
  func closed() {
    guard !isClosed else { return }
    isClosed = true
    stream = nil
    let wasActive = active.exchange(false, ordering: .relaxed)
    if wasActive { pipeline.fireChannelInactive() }
    pipeline.fireChannelUnregistered()
    closing.succeed()
    // Breaks the cycle between handlers and pipeline, after handlers that are still running.
    eventLoop.assumeIsolated().execute { self.removeHandlers(pipeline: self.pipeline) }
  }

  // MARK: Channel

  /// Created in `init`, which needs a complete channel for it.
  private(set) lazy var pipeline = ChannelPipeline(channel: self)

  var closeFuture: EventLoopFuture<Void> { closing.futureResult }

  var isActive: Bool { active.load(ordering: .relaxed) }

  var isWritable: Bool { writable.load(ordering: .relaxed) }

  var _channelCore: any ChannelCore { self }

  func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
    eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
  }

  func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
    eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
  }

  // MARK: ChannelCore

  func localAddress0() throws -> SocketAddress { throw ChannelError.operationUnsupported }

  func remoteAddress0() throws -> SocketAddress { throw ChannelError.operationUnsupported }

  func register0(promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }

  func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) {
    promise?.fail(ChannelError.operationUnsupported)
  }

  func bind0(to: SocketAddress, promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }

  func connect0(to: SocketAddress, promise: EventLoopPromise<Void>?) {
    promise?.fail(ChannelError.operationUnsupported)
  }

  func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard let client, stream != nil else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    client.write(unwrapData(data, as: HTTPResponsePart.self), promise: promise)
    writabilityChanged()
  }

  func flush0() { stream?.flush() }

  /// The request is complete before the channel exists.
  func read0() {}

  func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode == .input || isClosed {
      promise?.succeed()
      return
    }
    if let promise { closing.futureResult.cascade(to: promise) }
    stream?.end()
  }

  func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) {
    promise?.fail(ChannelError.operationUnsupported)
  }

  func channelRead0(_ data: NIOAny) {}

  func errorCaught0(error: any Error) {}
}

import NIOCore
import Synchronization

/// The open connections of a listener. They finish their requests when the listener ends.
///
/// Each is added and removed on its own event loop, without a task and without a turn of the listener's event loop.
final class OpenConnections: Sendable {
  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var isEnding = false
    /// Whether connections may still be added.
    var isAccepting = true
    var isClosing = false
  }

  private let state = Mutex(State())
  private let eventLoops: any EventLoopGroup
  private let end: EventLoopPromise<Void>

  init(on eventLoops: any EventLoopGroup) {
    self.eventLoops = eventLoops
    end = eventLoops.any().makePromise()
  }

  // For a listener that could not begin. A second completion changes nothing.
  deinit { end.succeed() }

  /// Whether the listener ends on purpose.
  var areEnding: Bool { state.withLock { $0.isEnding } }

  /// Adds a connection whose handlers are complete. It is removed when it closes.
  func add(_ channel: any Channel) {
    let id = ObjectIdentifier(channel)
    let (isEnding, isClosing) = state.withLock { state in
      state.channels[id] = channel
      return (state.isEnding, state.isClosing)
    }
    if isEnding { Self.quiesce(channel) }
    if isClosing { channel.close(promise: nil) }
    channel.closeFuture.whenComplete { _ in self.remove(id) }
  }

  private func remove(_ id: ObjectIdentifier) {
    let isLast = state.withLock { state in
      state.channels[id] = nil
      return !state.isAccepting && state.channels.isEmpty
    }
    if isLast { end.succeed() }
  }

  /// Closes the listener. Its connections close after their current request.
  func end(_ listener: any Channel) {
    let open = state.withLock { state -> [any Channel]? in
      if state.isEnding { return nil }
      state.isEnding = true
      return Array(state.channels.values)
    }
    guard let open else { return }
    for channel in open { Self.quiesce(channel) }
    // An accepted connection may still be on its way to its event loop. The library would close it with the listener,
    // so the listener first stops accepting, and closes when each event loop has had its turn.
    listener.setOption(ChannelOptions.autoRead, value: false).whenComplete { _ in
      let turns = self.eventLoops.makeIterator().map { $0.submit {} }
      EventLoopFuture.andAllComplete(turns, on: listener.eventLoop).whenComplete { _ in
        listener.close().whenComplete { _ in self.acceptNoMore() }
      }
    }
  }

  private func acceptNoMore() {
    let isEmpty = state.withLock { state in
      state.isAccepting = false
      return state.channels.isEmpty
    }
    if isEmpty { end.succeed() }
  }

  private static func quiesce(_ channel: any Channel) {
    channel.eventLoop.execute { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
  }

  /// Closes all connections at once, those that are still on their way included.
  func close() {
    let open = state.withLock { state in
      state.isClosing = true
      return Array(state.channels.values)
    }
    for channel in open { channel.close(promise: nil) }
  }

  /// Succeeds when the listener and all connections have ended.
  var ended: EventLoopFuture<Void> { end.futureResult }
}

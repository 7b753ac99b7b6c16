import NIOCore
import Synchronization

/// Pauses and resumes accepting connections. The socket stays open, and new clients wait in its backlog.
package final class AcceptGate: Sendable {
  private struct State {
    var channel: (any Channel)?
    var isShut = false
    var isGivenUp = false
    var giveUp: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  package init() {}

  /// - Parameters:
  /// - channel: the listener's channel.
  /// - giveUp: closes the listener and lets its connections finish.
  func attach(_ channel: any Channel, giveUp: @escaping @Sendable () -> Void) {
    state.withLock { ($0.channel, $0.giveUp) = (channel, giveUp) }
  }

  var isShut: Bool { state.withLock { $0.isShut } }

  /// Stops accepting. Connections that are already accepted are served.
  package func shut() async {
    let channel = state.withLock { state in
      state.isShut = true
      return state.channel
    }
    // Cancels the pending read. `AcceptGateHandler` then requests no further connections.
    try? await channel?.setOption(ChannelOptions.autoRead, value: false).get()
  }

  /// Accepts connections again.
  package func open() async {
    let channel = state.withLock { state in
      state.isShut = false
      return state.channel
    }
    guard let channel else { return }
    try? await channel.setOption(ChannelOptions.autoRead, value: true).get()
    channel.read()
  }

  /// Closes the listener permanently, because another process accepts on the socket. Open connections finish their
  /// requests.
  package func giveUp() {
    let giveUp = state.withLock { state in
      state.isGivenUp = true
      return state.giveUp
    }
    giveUp?()
  }

  /// Whether the listener closes because another process accepts.
  package var isGivenUp: Bool { state.withLock { $0.isGivenUp } }
}

/// Requests no connections while the gate is shut.
final class AcceptGateHandler: ChannelOutboundHandler {
  typealias OutboundIn = Never

  private let gate: AcceptGate

  init(_ gate: AcceptGate) { self.gate = gate }

  func read(context: ChannelHandlerContext) { if !gate.isShut { context.read() } }
}

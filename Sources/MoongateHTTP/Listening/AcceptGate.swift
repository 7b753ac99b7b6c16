import NIOCore
import Synchronization

/// Stops a listener from accepting connections, and lets it continue: the socket stays open, and those who connect
/// meanwhile wait in it.
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
  ///   - channel: the listener's.
  ///   - giveUp: ends the listener, and lets its connections finish.
  func attach(_ channel: any Channel, giveUp: @escaping @Sendable () -> Void) {
    state.withLock { ($0.channel, $0.giveUp) = (channel, giveUp) }
  }

  var isShut: Bool { state.withLock { $0.isShut } }

  /// Stops accepting. Each connection that was accepted is served.
  package func shut() async {
    let channel = state.withLock { state in
      state.isShut = true
      return state.channel
    }
    // What waits for a connection now is taken back; later, `AcceptGateHandler` asks for none.
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

  /// Ends the listener for good: another process accepts on the socket. Connections that are open finish their
  /// requests.
  package func giveUp() {
    let giveUp = state.withLock { state in
      state.isGivenUp = true
      return state.giveUp
    }
    giveUp?()
  }

  /// Whether the listener ends because another process accepts.
  package var isGivenUp: Bool { state.withLock { $0.isGivenUp } }
}

/// Asks for no connections while the gate is shut.
final class AcceptGateHandler: ChannelOutboundHandler {
  typealias OutboundIn = Never

  private let gate: AcceptGate

  init(_ gate: AcceptGate) { self.gate = gate }

  func read(context: ChannelHandlerContext) { if !gate.isShut { context.read() } }
}

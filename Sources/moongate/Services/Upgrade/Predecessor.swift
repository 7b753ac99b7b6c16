import CLinux
import Foundation
import MoongateCore
import MoongateHTTP
import MoongateProgram

/// The process that started this one as its replacement.
final class Predecessor: Sendable {
  /// The first inherited descriptor. The order is: control socket, standard error, public and admin listening socket,
  /// control sockets of earlier processes.
  private static let first: CInt = 3

  let sockets: InheritedSockets
  private let control: ControlSocket
  /// The control sockets of earlier processes that may still finish connections. The last one is `control`.
  private let chain: [ControlSocket]

  /// Takes the inherited descriptors and removes the variable, so that programs started by this process do not use
  /// them. Call once, before other threads read the environment.
  /// - Returns: nil if this process was not started by an upgrade.
  static func take() throws(StartProblem) -> Predecessor? {
    guard let note = ProcessInfo.processInfo.environment[UpgradeMessage.variable] else { return nil }
    unsetenv(UpgradeMessage.variable)
    return try Predecessor(note, process: getpid(), parent: getppid())
  }

  /// - Parameter note: `PID EARLIER LISTEN ADMIN`: the process id followed by the value of `note(of:)`.
  private init(_ note: String, process: pid_t, parent: pid_t) throws(StartProblem) {
    let parts = note.split(separator: " ").map(String.init)
    var maker: pid_t = 0
    var user: uid_t = 0
    // Attack: a stale variable in the environment refers to descriptors that belong to something else in this process.
    // The kernel reports which process created the socket pair; it must be the parent process, with the same user.
    guard parts.count == 4, let starter = pid_t(parts[0]), let earlier = Int(parts[1]),
      (0...Upgrading.maxPredecessors).contains(earlier),
      let listen = ListenAddress(parts[2]), let admin = ListenAddress(parts[3]),
      clinux_peer(Self.first, &maker, &user) == 0, maker == starter,
      starter != process, user == geteuid(),
      // If the other process was killed in the meantime, it is no longer the parent.
      parent == starter || ControlSocket.isOver(Self.first)
    else {
      throw StartProblem(
        "\(UpgradeMessage.variable) is set, but no gateway started this process as its replacement. Remove the variable.",
        status: .couldNotRun)
    }
    for index in 0..<CInt(4 + earlier) { _ = fcntl(Self.first + index, F_SETFD, FD_CLOEXEC) }
    // From here on, write to the real standard error instead of the pipe of the upgrade.
    dup2(Self.first + 1, STDERR_FILENO)
    close(Self.first + 1)
    control = ControlSocket(descriptor: Self.first)
    sockets = try InheritedSockets(listen: (Self.first + 2, listen), admin: (Self.first + 3, admin))
    chain = (0..<CInt(earlier)).map { ControlSocket(descriptor: Self.first + 4 + $0) } + [control]
  }

  /// The value of the environment variable, without the process id.
  /// - Parameter earlier: the number of earlier processes that still finish connections.
  static func note(listen: ListenAddress, admin: ListenAddress, earlier: Int) -> String {
    "\(earlier) \(listen) \(admin)"
  }

  func send(_ message: UpgradeMessage) { control.send(message.line) }

  /// Blocks until the previous process has stopped accepting connections.
  /// - Returns: the state that it had in memory; nil if it has exited.
  func awaitGo() -> TransferredState? {
    guard case .line(let line) = control.next(within: .seconds(3_600)) else { return nil }
    return TransferredState(line: line)
  }

  /// Called if this process ends before its turn.
  func abandon() { control.stopReading() }

  /// The control sockets of processes that still run, for the next process.
  var living: [CInt] { chain.filter { !$0.isOver }.map(\.descriptor) }
}

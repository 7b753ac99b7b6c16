import CLinux
import Foundation
import MoongateCore
import MoongateHTTP

/// The process that started this one to serve in its place.
final class Predecessor: Sendable {
  /// Where descriptors begin: the control socket, then standard error, the public and the admin listening socket, and
  /// processes that came before.
  private static let first: CInt = 3

  let sockets: InheritedSockets
  private let control: ControlSocket
  /// The control sockets of processes that came before, and may still finish connections. The last one is `control`.
  private let chain: [ControlSocket]

  /// Takes over what the process that started this one handed over, and removes the variable, so that programs that
  /// this one starts do not believe that it is for them. Called once, before there are other threads that read the
  /// environment.
  /// - Returns: nil if this process was started in another way.
  static func take() throws(StartProblem) -> Predecessor? {
    guard let note = ProcessInfo.processInfo.environment[UpgradeMessage.variable] else { return nil }
    unsetenv(UpgradeMessage.variable)
    return try Predecessor(note, process: getpid(), parent: getppid())
  }

  /// - Parameter note: `PID EARLIER LISTEN ADMIN`, as `note(of:)` makes it with the number of the process in front.
  private init(_ note: String, process: pid_t, parent: pid_t) throws(StartProblem) {
    let parts = note.split(separator: " ").map(String.init)
    var maker: pid_t = 0
    var user: uid_t = 0
    // Attack: a variable that was left behind in an environment. Its descriptors belong to something else here. The
    // kernel says which process made the pair of sockets, and it must be the one that started this one, of the same
    // user.
    guard parts.count == 4, let starter = pid_t(parts[0]), let earlier = Int(parts[1]),
      (0...Upgrading.mostPredecessors).contains(earlier),
      let listen = ListenAddress(parts[2]), let admin = ListenAddress(parts[3]),
      clinux_peer(Self.first, &maker, &user) == 0, maker == starter,
      starter != process, user == geteuid(),
      // One that was killed meanwhile cannot be the parent any more.
      parent == starter || ControlSocket.isOver(Self.first)
    else {
      throw StartProblem(
        "\(UpgradeMessage.variable) is set, and no gateway started this process in its place: remove the variable.",
        status: .couldNotRun)
    }
    for index in 0..<CInt(4 + earlier) { _ = fcntl(Self.first + index, F_SETFD, FD_CLOEXEC) }
    // From here on it writes where that process writes, and not into the pipe that stood for it.
    dup2(Self.first + 1, STDERR_FILENO)
    close(Self.first + 1)
    control = ControlSocket(descriptor: Self.first)
    sockets = try InheritedSockets(listen: (Self.first + 2, listen), admin: (Self.first + 3, admin))
    chain = (0..<CInt(earlier)).map { ControlSocket(descriptor: Self.first + 4 + $0) } + [control]
  }

  /// What is handed over, in the variable.
  /// - Parameter earlier: how many processes from before still finish connections.
  static func note(listen: ListenAddress, admin: ListenAddress, earlier: Int) -> String {
    "\(earlier) \(listen) \(admin)"
  }

  func say(_ message: UpgradeMessage) { control.say(message.line) }

  /// Waits until the process before has stopped accepting. Blocks.
  /// - Returns: what it had in memory; nil if it has ended.
  func awaitGo() -> HandedState? {
    guard case .line(let line) = control.next(within: .seconds(3_600)) else { return nil }
    return HandedState(line: line)
  }

  /// This process ends before it had its turn.
  func abandon() { control.stopReading() }

  /// Those that have not ended, for the process that comes after this one.
  var living: [CInt] { chain.filter { !$0.isOver }.map(\.descriptor) }
}

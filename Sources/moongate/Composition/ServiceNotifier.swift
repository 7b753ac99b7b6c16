import Foundation
import Synchronization

/// Tells the service manager how the gateway is (sd_notify(3)): datagrams to the socket that `NOTIFY_SOCKET` names.
/// Without the variable it does nothing.
///
/// It is written here since it is one system call. libsystemd would be one more library in the process that holds the
/// keys.
struct ServiceNotifier: Sendable {
  private let path: String?
  private let isOver = OnceFlag()

  /// Tells nobody.
  static let none = ServiceNotifier(path: nil)

  private init(path: String?) { self.path = path }

  /// - Parameter environment: of the process.
  init(environment: [String: String] = ProcessInfo.processInfo.environment) {
    // An abstract socket or a path, as systemd and container runtimes make them.
    path = environment["NOTIFY_SOCKET"].flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
  }

  /// The gateway serves: after its start, or after a reload.
  func ready(_ status: String) { send(["READY=1", "STATUS=\(LineLog.plain(status))"]) }

  /// A reload begins. `ready` ends it.
  func reloading() {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    send([
      "RELOADING=1", "MONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1_000)",
      "STATUS=Reading the configuration again",
    ])
  }

  /// The gateway takes no new connections, and ends.
  func stopping() { send(["STOPPING=1", "STATUS=Waiting for the requests under way"]) }

  /// A sentence for `systemctl status`.
  func status(_ status: String) { send(["STATUS=\(LineLog.plain(status))"]) }

  /// The gateway is alive.
  func alive() { send(["WATCHDOG=1"]) }

  /// Another process is the service from now on. Nothing more is told by this one: systemd would take it for word of a
  /// process that is not the service.
  func hand(over process: pid_t, _ status: String) {
    send(["MAINPID=\(process)", "STATUS=\(LineLog.plain(status))"])
    isOver.set()
  }

  private func send(_ lines: [String]) {
    guard let path, !isOver.isSet else { return }
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var name = Array(path.utf8)
    let room = MemoryLayout.size(ofValue: address.sun_path)
    guard name.count < room else { return }
    if path.hasPrefix("@") { name[0] = 0 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size - room + name.count)
    let message = Array(lines.joined(separator: "\n").utf8)
    _ = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, message, message.count, Int32(MSG_NOSIGNAL), $0, length)
      }
    }
  }
}

/// Set once.
private final class OnceFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  var isSet: Bool { flag.load(ordering: .acquiring) }

  func set() { flag.store(true, ordering: .releasing) }
}

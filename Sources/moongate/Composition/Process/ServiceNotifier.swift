// Import Glibc explicitly: the compiler attributes `struct timespec` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateProgram
import Synchronization

/// Sends the state of the gateway to the service manager (sd_notify(3)), as datagrams to the socket in `NOTIFY_SOCKET`.
/// Does nothing if the variable is not set.
///
/// This is a single system call, so the process that holds the keys does not need to load libsystemd.
struct ServiceNotifier: Sendable {
  private let path: String?
  private let isOver = OnceFlag()

  /// A notifier that does nothing.
  static let none = ServiceNotifier(path: nil)

  private init(path: String?) { self.path = path }

  /// - Parameter environment: the environment of the process.
  init(environment: [String: String] = ProcessInfo.processInfo.environment) {
    // An abstract socket or a path, as systemd and container runtimes create them.
    path = environment["NOTIFY_SOCKET"].flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
  }

  /// The status text of a gateway that serves a generation.
  static func serving(_ generation: String) -> String { "Serving generation \(generation.prefix(8))" }

  /// The gateway is ready, after its start or after a reload.
  func ready(_ status: String) { send(["READY=1", Self.line(status)]) }

  /// A reload starts. `ready` ends it.
  func reloading() {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    send([
      "RELOADING=1", "MONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1_000)",
      "STATUS=Reloading the configuration",
    ])
  }

  /// The gateway accepts no new connections and shuts down.
  func stopping() { send(["STOPPING=1", "STATUS=Waiting for open requests"]) }

  /// Sets the text for `systemctl status`.
  func status(_ status: String) { send([Self.line(status)]) }

  /// Sends a watchdog message.
  func alive() { send(["WATCHDOG=1"]) }

  /// Names another process as the main process of the service. This process sends nothing afterwards, because systemd
  /// would ignore or misattribute it.
  func hand(over process: pid_t, _ status: String) {
    send(["MAINPID=\(process)", Self.line(status)])
    isOver.set()
  }

  /// A text for `systemctl status` as one line. Lines are joined by spaces, because systemd removes the backslash of an
  /// escaped line break.
  ///
  /// Attack: a text with a line break injects an assignment like MAINPID=1.
  private static func line(_ status: String) -> String {
    let lines = status.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
    return "STATUS=" + LineLog.plain(lines.filter { !$0.isEmpty }.joined(separator: " "))
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

/// A flag that can be set once.
private final class OnceFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  var isSet: Bool { flag.load(ordering: .acquiring) }

  func set() { flag.store(true, ordering: .releasing) }
}

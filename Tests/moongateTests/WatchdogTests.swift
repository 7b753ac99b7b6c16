import Foundation
import MoongateTesting
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import MoongateGateway

@Suite("The service manager") struct WatchdogTests {
  private static func wait(_ loop: any EventLoop) async throws { try await loop.submit {}.get() }

  /// Attack: requests that block an event loop permanently. The gateway must stop its watchdog messages.
  @Test func blockedEventLoopStopsTheWatchdogMessages() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    let loops = Array(group.makeIterator())
    let pulse = EventLoopPulse(loops)
    #expect(pulse.take(), "no loop was asked yet")
    for loop in loops { try await Self.wait(loop) }
    #expect(pulse.take())
    for loop in loops { try await Self.wait(loop) }
    let gate = DispatchSemaphore(value: 0)
    loops[1].execute { gate.wait() }
    #expect(pulse.take(), "the loops answered before")
    #expect(!pulse.take() && !pulse.take(), "a blocked loop")
    gate.signal()
    for loop in loops { try await Self.wait(loop) }
    #expect(pulse.take(), "it answers again")
    try await group.shutdownGracefully()
  }

  @Test func onlyAWatchedProcessSendsKeepalives() {
    let make = { (environment: [String: String]) in
      Watchdog(
        environment: environment, process: 5, eventLoops: MultiThreadedEventLoopGroup.singleton, notifier: .none,
        logger: CapturedLog().logger)
    }
    #expect(
      make([:]) == nil && make(["WATCHDOG_USEC": "0"]) == nil
        && make(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "6"]) == nil)
    #expect(
      make(["WATCHDOG_USEC": "30000000"]) != nil && make(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "5"]) != nil)
  }

  /// The messages of a notifier, received on a socket of the given kind.
  private func received(at name: String, _ body: (ServiceNotifier) -> Void) throws -> [String] {
    let server = socket(
      AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    defer { close(server) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var path = Array(name.utf8)
    if name.hasPrefix("@") { path[0] = 0 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size - 108 + path.count)
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(server, $0, length) == 0 }
    }
    #expect(isBound)
    body(ServiceNotifier(environment: ["NOTIFY_SOCKET": name]))
    var messages: [String] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while case let count = recv(server, &buffer, buffer.count, 0), count > 0 {
      messages.append(String(decoding: buffer[..<count], as: UTF8.self))
    }
    return messages
  }

  @Test func notificationsReachAPathAndAnAbstractSocket() throws {
    let folder = try ScratchFolder()
    for name in [folder.path("notify"), "@moongate-test-\(UUID().uuidString)"] {
      let told = try received(at: name) { notifier in
        notifier.ready("Serving generation 01234567")
        notifier.reloading()
        notifier.stopping()
        notifier.alive()
      }
      #expect(told.count == 4)
      #expect(told.first == "READY=1\nSTATUS=Serving generation 01234567")
      #expect(told[1].wholeMatch(of: /RELOADING=1\nMONOTONIC_USEC=[0-9]+\nSTATUS=.*/) != nil)
      #expect(told[2].hasPrefix("STOPPING=1\n") && told[3] == "WATCHDOG=1")
    }
  }

  /// Attack: a status with a line break would inject an assignment like MAINPID=1.
  @Test func aStatusIsOneLine() throws {
    let told = try received(at: "@moongate-test-\(UUID().uuidString)") { notifier in
      notifier.status("bad\nMAINPID=1")
      notifier.ready("The configuration has 1 problem.\r\n\n  gateway.lua:22: unknown field\u{1b}\n")
      notifier.hand(over: 7, "a\u{2028}b")
    }
    #expect(
      told == [
        "STATUS=bad MAINPID=1",
        "READY=1\nSTATUS=The configuration has 1 problem. gateway.lua:22: unknown field\\u{1b}",
        "MAINPID=7\nSTATUS=a b",
      ])
  }
}

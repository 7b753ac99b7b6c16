import Foundation
import MoongateCore
import MoongateTesting
import Synchronization
import Testing

@Suite struct DescriptorIOTests {
  /// A thread that writes to a pipe.
  private final class Writer: Sendable {
    let hasBegun = DispatchSemaphore(value: 0)
    /// The thread lives as long as it may be sent signals.
    let mayEnd = DispatchSemaphore(value: 0)
    let hasEnded = DispatchSemaphore(value: 0)
    private let own = Mutex<pthread_t?>(nil)
    private let result = Mutex(false)

    var thread: pthread_t? { own.withLock { $0 } }
    var isWritten: Bool { result.withLock { $0 } }

    func run(_ bytes: [UInt8], to descriptor: Int32) {
      own.withLock { $0 = pthread_self() }
      hasBegun.signal()
      let isWritten = DescriptorIO.writeAll(bytes, to: descriptor)
      result.withLock { $0 = isWritten }
      close(descriptor)
      mayEnd.wait()
      hasEnded.signal()
    }
  }

  /// Signals interrupt a `write` that waits, and end one that has written a part.
  @Test func writesContinueAfterSignals() throws {
    var action = sigaction()
    action.__sigaction_handler = .init(sa_handler: { _ in })
    var before = sigaction()
    // Without SA_RESTART, system calls return.
    let isHandled = sigaction(SIGUSR1, &action, &before) == 0
    try #require(isHandled)
    defer { sigaction(SIGUSR1, &before, nil) }
    var ends: [Int32] = [-1, -1]
    let isMade = pipe(&ends) == 0
    try #require(isMade)
    let (own, other) = (ends[0], ends[1])
    defer { close(own) }
    let bytes = (0..<500_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let writer = Writer()
    Thread.detachNewThread { writer.run(bytes, to: other) }
    writer.hasBegun.wait()
    defer {
      writer.mayEnd.signal()
      writer.hasEnded.wait()
    }
    let thread = try #require(writer.thread)
    var read: [UInt8] = []
    while let part = DescriptorIO.readSome(of: own, most: 1000), !part.isEmpty {
      read += part
      pthread_kill(thread, SIGUSR1)
    }
    #expect(read == bytes)
    #expect(writer.isWritten)
  }

  @Test func readsToTheEndOrToTheBound() throws {
    let folder = try ScratchFolder()
    let text = String(repeating: "0123456789", count: 20_000)
    try folder.write(text, to: "file")
    for (most, expected) in [(1_000_000, 200_000), (200_000, 200_000), (199_999, 199_999), (5, 5), (0, 0)] {
      let file = open(folder.path("file"), O_RDONLY | O_CLOEXEC)
      defer { close(file) }
      #expect(DescriptorIO.readAll(of: file, most: most) == Array(text.utf8.prefix(expected)))
    }
  }

  /// A failed read is not the end of the file.
  @Test func aFailedReadIsReported() throws {
    let file = open("/", O_RDONLY | O_CLOEXEC)
    try #require(file >= 0)
    defer { close(file) }
    let bytes = DescriptorIO.readAll(of: file, most: 10)
    let code = errno
    #expect(bytes == nil)
    #expect(code == EISDIR)
  }

  @Test func aFailedWriteIsReported() throws {
    let file = open("/dev/full", O_WRONLY | O_CLOEXEC)
    try #require(file >= 0)
    defer { close(file) }
    let isWritten = DescriptorIO.writeAll([1], to: file)
    let code = errno
    #expect(!isWritten)
    #expect(code == ENOSPC)
    #expect(DescriptorIO.writeAll([], to: file))
  }

  /// Without a SIGPIPE, which would end the process.
  @Test func aClosedSocketIsReported() throws {
    var ends: [Int32] = [-1, -1]
    let isMade = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0
    try #require(isMade)
    defer { close(ends[0]) }
    #expect(DescriptorIO.sendAll(Array("ready".utf8), to: ends[0]))
    #expect(DescriptorIO.readAll(of: ends[1], most: 5) == Array("ready".utf8))
    close(ends[1])
    let isSent = DescriptorIO.sendAll([1], to: ends[0])
    let code = errno
    #expect(!isSent)
    #expect(code == EPIPE)
  }
}

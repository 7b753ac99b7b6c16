import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateGateway

/// The messages between two processes during an upgrade.
@Suite struct UpgradeMessageTests {
  @Test(arguments: [UpgradeMessage.prepared, .serving(generation: "abc"), .failed("Port 1 is taken.")])
  func isReadAsItWasWritten(_ message: UpgradeMessage) { #expect(UpgradeMessage(message.line) == message) }

  @Test(arguments: ["", "prepared", "prepared 2", "serving", "hello", "go {}"]) func invalidMessagesAreNotRead(
    _ line: String
  ) {
    #expect(UpgradeMessage(line) == nil)
  }

  @Test func aSentenceOfSeveralLinesIsOne() {
    #expect(
      UpgradeMessage.failed("Not started: 1 problem.\n  routes.lua:3: no").line
        == "failed Not started: 1 problem. routes.lua:3: no")
  }

  @Test func stateIsReadAsItWasWritten() throws {
    let message = TransferredState.OutboxMessage(
      at: 1, channel: "sms", to: "+919999999999", subject: nil, text: "Your code:\n123456", code: "123456")
    let line = TransferredState(outbox: [message]).line
    #expect(!line.contains("\n"))
    #expect(try #require(TransferredState(line: line)).outbox.first?.text == message.text)
    #expect(TransferredState(line: "stop") == nil)
  }
}

/// The log line of a process that continues.
@Suite struct UpgradeLogTests {
  @Test func consistsOfSentences() {
    #expect(Upgrading.keptLine("It failed.") == "upgrade: It failed. This process continues.")
    #expect(
      Upgrading.keptLine("The new process failed: gateway.lua:3: unexpected symbol near 'oops'")
        == "upgrade: The new process failed: gateway.lua:3: unexpected symbol near 'oops'. This process continues.")
  }
}

/// The sockets that carry the messages.
@Suite struct ControlSocketTests {
  @Test func linesAreReadOneByOne() throws {
    let (own, other) = try ControlSocket.pair()
    other.send("one")
    other.send("two")
    #expect(own.next(within: .seconds(5)) == .line("one"))
    #expect(own.next(within: .seconds(5)) == .line("two"))
    #expect(own.next(within: .zero) == .silence)
    #expect(!own.isOver)
    other.send("half")
    #expect(!own.isOver)
  }

  @Test func anEndIsSeen() throws {
    let own: ControlSocket
    do {
      let pair = try ControlSocket.pair()
      own = pair.own
      pair.other.send("last")
    }
    #expect(own.next(within: .seconds(5)) == .line("last"))
    #expect(own.isOver)
    #expect(own.next(within: .seconds(5)) == .end)
    own.send("to nobody")
  }

  @Test func readingCanBeStopped() throws {
    let (own, other) = try ControlSocket.pair()
    own.stopReading()
    #expect(own.next(within: .seconds(5)) == .end)
    withExtendedLifetime(other) {}
  }
}

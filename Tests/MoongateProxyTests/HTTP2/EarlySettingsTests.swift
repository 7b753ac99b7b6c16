import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// The gateway's settings apply from the first request on, regardless of how the bytes are split.
@Suite struct EarlySettingsTests {
  private static let magic = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private static let acknowledgement: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]
  /// A SETTINGS frame with one parameter.
  private static let settings: [UInt8] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]
  private static let headers: [UInt8] = [0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x87, 0x84]
  /// Data that looks like an acknowledgement.
  private static let data: [UInt8] = [0, 0, 9, 0, 1, 0, 0, 0, 1] + acknowledgement

  private func passed(_ bytes: [UInt8], piece: Int) throws -> [UInt8] {
    let channel = EmbeddedChannel(handler: EarlySettings())
    var rest = bytes[...]
    while !rest.isEmpty {
      try channel.writeInbound(ByteBuffer(bytes: rest.prefix(piece)))
      rest = rest.dropFirst(piece)
    }
    var out: [UInt8] = []
    while let part = try channel.readInbound(as: ByteBuffer.self) { out += part.readableBytesView }
    _ = try? channel.finish()
    return out
  }

  @Test(arguments: [1, 2, 9, 24, 33, 38, 1000]) func theAcknowledgementComesFirst(piece: Int) throws {
    let sent =
      Self.magic + Self.settings + Self.headers + Self.data + Self.acknowledgement + Self.headers + Self.acknowledgement
    let wanted =
      Self.magic + Self.settings + Self.acknowledgement + Self.headers + Self.data + Self.headers + Self.acknowledgement
    #expect(try passed(sent, piece: piece) == wanted)
  }

  @Test(arguments: [1, 1000]) func otherFirstFramesArePassedOn(piece: Int) throws {
    for sent in [Self.magic + Self.headers + Self.settings, Self.magic + Self.acknowledgement + Self.settings] {
      #expect(try passed(sent, piece: piece) == sent)
    }
  }

  /// RFC 9113 section 3.4: refused at the first wrong byte, and nothing is passed on.
  @Test(arguments: 0..<24) func aWrongPrefaceIsRefusedAtItsFirstWrongByte(place: Int) throws {
    let channel = EmbeddedChannel(handler: EarlySettings())
    if place > 0 { try channel.writeInbound(ByteBuffer(bytes: Self.magic.prefix(place))) }
    #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    try channel.writeInbound(ByteBuffer(bytes: [Self.magic[place] ^ 1]))
    let goAway: [UInt8] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    #expect(try channel.readOutbound(as: ByteBuffer.self) == ByteBuffer(bytes: goAway))
    #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
    _ = try? channel.finish(acceptAlreadyClosed: true)
  }

  /// RFC 9113 section 6.5: an acknowledgement with a payload is an error that the frame decoder must report.
  @Test func anAcknowledgementWithAPayloadIsPassedOn() throws {
    let bad: [UInt8] = [0, 0, 1, 4, 1, 0, 0, 0, 0, 7]
    let sent = Self.magic + Self.settings + bad
    #expect(try passed(sent, piece: 1000) == Self.magic + Self.settings + Self.acknowledgement + bad)
  }
}

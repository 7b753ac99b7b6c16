import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// What the library sees of the client's frames, and the client of the library's, regardless of how bytes are split.
@Suite struct FrameAdapterTests {
  private static let magic = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private static let acknowledgement: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]
  /// A SETTINGS frame with one parameter.
  private static let settings = EmbeddedStreams.settings([(3, 100)])
  private static let firstSettings = EmbeddedStreams.settings([(3, 100), (5, 16_777_215)])
  private static let headers: [UInt8] = [0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x87, 0x84]
  /// Data that looks like an acknowledgement.
  private static let data: [UInt8] = [0, 0, 9, 0, 1, 0, 0, 0, 1] + acknowledgement
  private static let pieces = [1, 2, 9, 24, 33, 38, 1000]

  private func passed(_ bytes: [UInt8], piece: Int) throws -> [UInt8] {
    let channel = EmbeddedChannel(handler: FrameAdapter(maxStreams: 128))
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

  private func written(_ frames: [[UInt8]]) throws -> [UInt8] {
    let channel = EmbeddedChannel(handler: FrameAdapter(maxStreams: 128))
    for frame in frames { try channel.writeOutbound(ByteBuffer(bytes: frame)) }
    var out: [UInt8] = []
    while let part = try channel.readOutbound(as: ByteBuffer.self) { out += part.readableBytesView }
    _ = try? channel.finish()
    return out
  }

  @Test(arguments: pieces) func theAcknowledgementComesFirst(piece: Int) throws {
    let sent =
      Self.magic + Self.settings + Self.headers + Self.data + Self.acknowledgement + Self.headers + Self.acknowledgement
    let wanted =
      Self.magic + Self.firstSettings + Self.acknowledgement + Self.headers + Self.data + Self.headers
      + Self.acknowledgement
    #expect(try passed(sent, piece: piece) == wanted)
  }

  /// Attack: SETTINGS_HEADER_TABLE_SIZE of 4 GiB, at once or later. Each response would take memory, and search all of
  /// it.
  @Test(arguments: pieces) func theTableOfHeaderCompressionIsBounded(piece: Int) throws {
    let large = EmbeddedStreams.settings([(1, 4_294_967_295), (4, 5), (1, 100), (1, 4097)])
    let small = EmbeddedStreams.settings([(1, 4096), (4, 5), (1, 100), (1, 4096)])
    let sent = Self.magic + Self.settings + Self.data + large + Self.headers + large
    let wanted =
      Self.magic + Self.firstSettings + Self.acknowledgement + Self.data + small + Self.headers + small
    #expect(try passed(sent, piece: piece) == wanted)
    let first = try passed(Self.magic + large, piece: piece)
    let larger = EmbeddedStreams.settings([(1, 4096), (4, 5), (1, 100), (1, 4096), (5, 16_777_215)])
    #expect(first == Self.magic + larger + Self.acknowledgement)
  }

  /// The library writes frames of any size, which are split. It refuses sizes that are not valid.
  @Test(arguments: [(16_384, 16_777_215), (1_000_000, 16_777_215), (16_383, 16_383), (16_777_216, 16_777_216)])
  func frameSizesOfTheClientAreReplaced(sent: UInt32, seen: UInt32) throws {
    let found = try passed(Self.magic + Self.settings + EmbeddedStreams.settings([(5, sent)]), piece: 1000)
    #expect(
      found == Self.magic + Self.firstSettings + Self.acknowledgement + EmbeddedStreams.settings([(5, seen)]))
  }

  /// RFC 9113 section 6.10.
  @Test(arguments: [0, 1]) func largeHeadsAreContinued(flags: UInt8) throws {
    let block = (0..<40_000).map { UInt8($0 % 251) }
    let found = try written([
      EmbeddedStreams.settings([]), EmbeddedStreams.frame(1, flags: 4 | flags, stream: 7, block),
    ])
    let wanted =
      EmbeddedStreams.settings([])
      + EmbeddedStreams.frame(1, flags: flags, stream: 7, Array(block[..<16_384]))
      + EmbeddedStreams.frame(9, flags: 0, stream: 7, Array(block[16_384..<32_768]))
      + EmbeddedStreams.frame(9, flags: 4, stream: 7, Array(block[32_768...]))
    #expect(found == wanted)
  }

  @Test(arguments: [16_384, 16_385]) func headsThatFitStayOneFrame(length: Int) throws {
    let frame = EmbeddedStreams.frame(1, flags: 5, stream: 1, Array(repeating: 1, count: length))
    let found = try written([EmbeddedStreams.settings([]), frame])
    #expect((found.count == 9 + frame.count) == (length == 16_384))
  }

  /// The library accepts more streams than the client is told, so that those between can be refused.
  @Test func theClientIsToldItsLimitOfStreams() throws {
    let own = EmbeddedStreams.settings([(3, 1024), (4, 65_536)])
    #expect(try written([own, own]) == EmbeddedStreams.settings([(3, 128), (4, 65_536)]) + own)
  }

  /// The library refuses a connection that begins with them.
  @Test(arguments: [1, 1000]) func otherFirstFramesArePassedOn(piece: Int) throws {
    for first in [Self.headers, Self.acknowledgement] {
      let sent = Self.magic + first + Self.settings
      #expect(try passed(sent, piece: piece) == Self.magic + first + Self.firstSettings + Self.acknowledgement)
    }
  }

  /// RFC 9113 section 3.4: refused at the first wrong byte, and nothing is passed on.
  @Test(arguments: 0..<24) func aWrongPrefaceIsRefusedAtItsFirstWrongByte(place: Int) throws {
    let channel = EmbeddedChannel(handler: FrameAdapter(maxStreams: 128))
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
    #expect(try passed(sent, piece: 1000) == Self.magic + Self.firstSettings + Self.acknowledgement + bad)
  }
}

/// Reads the one thing of a TLS ClientHello that has to be known before the TLS library has it.
enum ClientHello {
  /// What the ALPN extension says (RFC 7301 section 3.1).
  enum Protocols: Equatable {
    /// More bytes are needed.
    case incomplete
    /// There is no such extension, or these bytes are no ClientHello.
    case notOffered
    case offered([[UInt8]])
  }

  /// The longest ClientHello that is read: what BoringSSL accepts.
  private static let limit = 16 * 1024

  private static let handshakeRecord: UInt8 = 22
  private static let clientHello: UInt8 = 1
  private static let alpnExtension = 16

  /// - Parameter bytes: all that the client has sent, from its first byte.
  static func offeredProtocols(_ bytes: some Collection<UInt8>) -> Protocols {
    switch handshakeMessage(bytes) {
    case .incomplete: .incomplete
    case .notOffered: .notOffered
    case .message(let message): protocols(in: message)
    }
  }

  private enum Message {
    case incomplete, notOffered
    case message([UInt8])
  }

  /// Puts the message together from its records (RFC 8446 section 5.1): it may come in any number of them.
  private static func handshakeMessage(_ bytes: some Collection<UInt8>) -> Message {
    var reader = Reader(Array(bytes.prefix(2 * limit)))
    var message: [UInt8] = []
    while true {
      if message.count >= 4 {
        guard message[0] == clientHello else { return .notOffered }
        let length = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
        guard length <= limit else { return .notOffered }
        if message.count >= 4 + length { return .message(Array(message[4..<4 + length])) }
      }
      guard let type = reader.byte() else { return .incomplete }
      guard type == handshakeRecord else { return .notOffered }
      guard let major = reader.byte() else { return .incomplete }
      guard major == 3 else { return .notOffered }
      guard reader.byte() != nil, let length = reader.word() else { return .incomplete }
      // Attack: records without a byte, or with one each, so that a message never ends: the bytes at hand are bounded.
      guard length > 0, reader.offset + length <= 2 * limit else { return .notOffered }
      guard let fragment = reader.bytes(length) else { return .incomplete }
      message += fragment
    }
  }

  /// - Parameter message: the body of a ClientHello (RFC 8446 section 4.1.2).
  private static func protocols(in message: [UInt8]) -> Protocols {
    var reader = Reader(message)
    // Version, random, session id, cipher suites, compression methods.
    guard reader.bytes(34) != nil, let session = reader.byte(), reader.bytes(Int(session)) != nil,
      let suites = reader.word(),
      reader.bytes(suites) != nil, let methods = reader.byte(), reader.bytes(Int(methods)) != nil,
      let length = reader.word(),
      let block = reader.bytes(length)
    else { return .notOffered }
    var extensions = Reader(block)
    while let type = extensions.word() {
      guard let length = extensions.word(), let body = extensions.bytes(length) else { return .notOffered }
      if type == alpnExtension { return names(in: body) }
    }
    return .notOffered
  }

  private static func names(in body: [UInt8]) -> Protocols {
    var reader = Reader(body)
    guard let length = reader.word(), let list = reader.bytes(length), reader.isAtEnd else { return .notOffered }
    var entries = Reader(list)
    var names: [[UInt8]] = []
    while let length = entries.byte() {
      guard length > 0, let name = entries.bytes(Int(length)) else { return .notOffered }
      names.append(name)
    }
    return .offered(names)
  }

  /// Big-endian numbers and vectors, each nil where the bytes end before it.
  private struct Reader {
    private let all: [UInt8]
    private(set) var offset = 0

    init(_ bytes: [UInt8]) { all = bytes }

    var isAtEnd: Bool { offset == all.count }

    mutating func byte() -> UInt8? {
      guard offset < all.count else { return nil }
      offset += 1
      return all[offset - 1]
    }

    mutating func word() -> Int? {
      guard offset + 2 <= all.count else { return nil }
      offset += 2
      return Int(all[offset - 2]) << 8 | Int(all[offset - 1])
    }

    mutating func bytes(_ count: Int) -> [UInt8]? {
      guard offset + count <= all.count else { return nil }
      offset += count
      return Array(all[offset - count..<offset])
    }
  }
}

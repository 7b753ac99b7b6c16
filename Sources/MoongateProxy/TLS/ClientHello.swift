/// Parses the ALPN extension of a TLS ClientHello before the TLS library reads it.
enum ClientHello {
  /// The contents of the ALPN extension (RFC 7301 section 3.1).
  enum Protocols: Equatable {
    /// More bytes are needed.
    case incomplete
    /// The extension is missing, or the bytes are not a ClientHello.
    case notOffered
    case offered([[UInt8]])
  }

  /// The maximum length of a ClientHello, equal to the limit of BoringSSL.
  private static let limit = 16 * 1024

  private static let handshakeRecord: UInt8 = 22
  private static let clientHello: UInt8 = 1
  private static let alpnExtension = 16

  /// - Parameter bytes: all bytes of the client so far.
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

  /// Assembles the handshake message from any number of records (RFC 8446 section 5.1).
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
      // Attack: empty or one-byte records, so that the message never ends. The number of bytes is limited.
      guard length > 0, reader.offset + length <= 2 * limit else { return .notOffered }
      guard let fragment = reader.bytes(length) else { return .incomplete }
      message += fragment
    }
  }

  /// - Parameter message: the body of a ClientHello (RFC 8446 section 4.1.2).
  private static func protocols(in message: [UInt8]) -> Protocols {
    var reader = Reader(message)
    // Skip version, random, session id, cipher suites and compression methods.
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

  /// Reads big-endian numbers and vectors; nil if the bytes end before.
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

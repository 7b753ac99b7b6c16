import MoongateProxy
import NIOCore
import NIOEmbedded
import NIOHTTP1

/// A request as a parser interpreted it.
struct DecodedMessage: Equatable, CustomStringConvertible {
  var method: String
  var target: String
  var minorVersion: Int
  var fields: [String]
  var body: [UInt8] = []
  var isComplete = false

  var description: String {
    "\(method) \(target) 1.\(minorVersion) \(fields) body \(body.count) \(isComplete ? "complete" : "cut")"
  }
}

/// The interpretation of a byte stream: the messages, and the fault that ended it.
struct Understanding: Equatable {
  var messages: [DecodedMessage] = []
  var fault: MessageFault?
}

/// Parses a stream with our decoder, in the given pieces.
func readOurs(_ pieces: [[UInt8]]) -> Understanding {
  var understood = Understanding()
  var decoder = RequestDecoder()
  var body: BodyDecoder?
  var input = ByteBuffer()
  var spare: [HeadField] = []
  for piece in pieces {
    input.writeBytes(piece)
    do throws(MessageFault) {
      reading: while true {
        if body == nil {
          guard input.readableBytes > 0, let head = try decoder.next(&input, spare: &spare) else { break reading }
          understood.messages.append(
            DecodedMessage(
              method: head.text(head.methodName), target: head.text(head.target), minorVersion: Int(head.minorVersion),
              fields: head.fields.map { "\(head.text($0.name)): \(head.text($0.value))" }))
          body = BodyDecoder(head.framing)
        }
        switch try body?.next(&input) {
        case .data(let data): understood.messages[understood.messages.count - 1].body += Array(data.readableBytesView)
        case .end:
          understood.messages[understood.messages.count - 1].isComplete = true
          body = nil
        case .incomplete, nil: break reading
        }
      }
    } catch {
      understood.fault = error
      return understood
    }
  }
  return understood
}

/// Parses a stream with llhttp for comparison.
func readTheirs(_ bytes: [UInt8]) -> Understanding {
  var understood = Understanding()
  let channel = EmbeddedChannel()
  defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
  do {
    try channel.pipeline.syncOperations.addHandler(
      ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
    try channel.writeInbound(ByteBuffer(bytes: bytes))
  } catch {
    understood.fault = .malformed("\(error)")
  }
  while let part = try? channel.readInbound(as: HTTPServerRequestPart.self) {
    switch part {
    case .head(let head):
      understood.messages.append(
        DecodedMessage(
          method: head.method.rawValue, target: head.uri, minorVersion: head.version.minor,
          fields: head.headers.map { "\($0.name): \($0.value)" }))
    case .body(let data): understood.messages[understood.messages.count - 1].body += Array(data.readableBytesView)
    case .end: understood.messages[understood.messages.count - 1].isComplete = true
    }
  }
  return understood
}

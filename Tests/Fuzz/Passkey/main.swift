// Feeds mutated answers of authenticators to the readers of Plugins/Passkey, under AddressSanitizer:
// `make fuzz-passkey`. A trap or a report ends the program.

/// Random numbers that are the same for the same seed.
struct Random {
  var state: UInt64

  mutating func below(_ limit: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int((state >> 24) % UInt64(limit))
  }

  /// Changes, inserts or removes up to four bytes.
  mutating func mutate(_ original: [UInt8]) -> [UInt8] {
    var bytes = original
    for _ in 0...below(4) {
      let index = below(bytes.count)
      switch below(4) {
      case 0: bytes[index] = UInt8(below(256))
      case 1: bytes[index] ^= 1 << UInt8(below(8))
      case 2: bytes.remove(at: index)
      default: bytes.insert(UInt8(below(256)), at: index)
      }
    }
    return bytes
  }
}

/// A COSE key on P-256, authenticator data with that key and an extension, and an attestation object: each as
/// authenticators write it.
let key: [UInt8] =
  [0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20] + [UInt8](repeating: 7, count: 32) + [0x22, 0x58, 0x20]
  + [UInt8](repeating: 9, count: 32)
let data: [UInt8] =
  [UInt8](repeating: 3, count: 32) + [0xc5, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 16) + [0, 4, 1, 2, 3, 4] + key
  + [0xa0]
let object: [UInt8] =
  [0xa3, 0x63] + Array("fmt".utf8) + [0x64] + Array("none".utf8) + [0x67] + Array("attStmt".utf8) + [0xa0, 0x68]
  + Array("authData".utf8)
  + [0x58, UInt8(data.count)] + data

let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 1_000_000
var random = Random(state: CommandLine.arguments.dropFirst(2).first.flatMap { UInt64($0) } ?? 1)
var wellFormed = 0
for round in 0..<rounds {
  let bytes = random.mutate([key, data, object][round % 3])
  if let value = try? CBORReader.read(bytes) {
    wellFormed += 1
    if let inner = value[.text("authData")]?.bytes { _ = AuthenticatorData(inner) }
  }
  if AuthenticatorData(bytes) != nil { wellFormed += 1 }
  _ = Base64URL.decode(String(decoding: bytes, as: UTF8.self))
}
print("\(rounds) answers, \(wellFormed) of them well formed")

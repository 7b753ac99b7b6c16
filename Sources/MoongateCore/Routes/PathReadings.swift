/// All readings of a path by programs that disagree about `%2F`, `%5C` and `//`.
///
/// Each `%2F` and `%5C` is a separator or a part of a name, independently of the others, and each separator after
/// another one counts or not. A path with n such bytes has up to 2ⁿ readings. `PatternAutomaton` follows them together,
/// so that the time is at most the length of the path times that of the pattern.
struct PathReadings {
  private enum Mode {
    static let name: UInt8 = 1
    static let afterSeparator: UInt8 = 2
    /// After `;`, up to the next separator.
    static let parameters: UInt8 = 4
    static let outsideParameters = name | afterSeparator
  }

  /// The path decoded once, with its parameters. An encoded separator is a byte of `EncodedPathBytes`.
  private let bytes: [UInt8]

  /// - Parameter raw: a path as received, from which a `RequestPath` was made.
  init(_ raw: Span<UInt8>) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(raw.count)
    var index = 0
    while index < raw.count {
      if let byte = RequestPath.encodedByte(raw, at: index) {
        bytes.append(EncodedPathBytes.mark(of: byte) ?? byte)
        index += 3
      } else {
        bytes.append(raw[index])
        index += 1
      }
    }
    self.bytes = bytes
  }

  /// Whether at least one reading matches the pattern.
  func contain(pathOf pattern: PatternAutomaton) -> Bool {
    var states = pattern.start(in: Mode.name)
    var spare = states
    for byte in bytes {
      if states.isEmpty { return false }
      if pattern.acceptsAnyRest(states) { return true }
      pattern.advance(&states, &spare) { states, next in
        switch byte {
        case UInt8(ascii: "/"): readSeparator(pattern, states, &next)
        case EncodedPathBytes.slashMark, EncodedPathBytes.backslashMark:
          readSeparator(pattern, states, &next)
          readName(byte, pattern, states, &next)
        case UInt8(ascii: ";"): pattern.keep(states, as: Mode.parameters, into: &next)
        default: readName(byte, pattern, states, &next)
        }
      }
    }
    return pattern.accepts(states)
  }

  private func readSeparator(
    _ pattern: PatternAutomaton, _ states: PatternAutomaton.States, _ next: inout PatternAutomaton.States
  ) {
    pattern.read(UInt8(ascii: "/"), from: states, to: Mode.afterSeparator, into: &next)
    pattern.keep(states, in: Mode.afterSeparator, as: Mode.afterSeparator, into: &next)
  }

  private func readName(
    _ byte: UInt8, _ pattern: PatternAutomaton, _ states: PatternAutomaton.States,
    _ next: inout PatternAutomaton.States
  ) {
    pattern.read(byte, from: states, in: Mode.outsideParameters, to: Mode.name, into: &next)
    pattern.keep(states, in: Mode.parameters, as: Mode.parameters, into: &next)
  }
}

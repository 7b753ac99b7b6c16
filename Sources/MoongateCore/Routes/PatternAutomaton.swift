import MoongateCore

/// A path pattern as an automaton over bytes. It accepts the same paths as `RouteMatcher`.
struct PatternAutomaton {
  private enum Token {
    case byte(UInt8)
    /// `*`: any bytes within a segment.
    case run
    /// `**`: any number of segments, each with its slash.
    case segments
  }

  /// Positions in the pattern, two for each token: before it and inside it.
  typealias States = Set<Int>

  private static let slash = UInt8(ascii: "/")
  private let tokens: [Token]

  init(_ pattern: PathPattern) {
    tokens = pattern.segments.flatMap { segment -> [Token] in
      switch segment {
      case .anySegments: [.segments]
      case .glob(let bytes): [.byte(Self.slash)] + bytes.map { $0 == UInt8(ascii: "*") ? .run : .byte($0) }
      }
    }
  }

  /// The states before the first byte.
  var start: States { closure([0]) }

  /// Whether a path that ends in these states matches.
  func accepts(_ states: States) -> Bool { states.contains(tokens.count * 2) }

  func step(_ states: States, _ byte: UInt8) -> States {
    var next: States = []
    for state in states where state / 2 < tokens.count {
      let isInside = state % 2 == 1
      switch tokens[state / 2] {
      case .byte(let wanted): if wanted == byte { next.insert(state + 2) }
      case .run: if byte != Self.slash { next.insert(state) }
      case .segments: if isInside || byte == Self.slash { next.insert(state | 1) }
      }
    }
    return closure(next)
  }

  /// Adds the states that are reached without reading a byte.
  private func closure(_ states: States) -> States {
    var all = states
    var pending = Array(states)
    while let state = pending.popLast() {
      guard state / 2 < tokens.count else { continue }
      switch tokens[state / 2] {
      case .byte: continue
      case .run, .segments:
        let after = (state / 2 + 1) * 2
        if all.insert(after).inserted { pending.append(after) }
      }
    }
    return all
  }

  /// The bytes that occur in the pattern. All other bytes are equivalent.
  var bytes: Set<UInt8> { Set(tokens.compactMap { if case .byte(let byte) = $0 { byte } else { nil } }) }
}

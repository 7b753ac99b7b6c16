/// A path pattern as an automaton over bytes. It accepts the same paths as `CompiledPattern`, and can follow several
/// readings of a path at once (`PathReadings`).
package struct PatternAutomaton: Sendable {
  private enum Token: Sendable {
    case byte(UInt8)
    /// `*`: any bytes within a segment.
    case run
    /// The beginning of `**`: nothing, or a slash and `rest`.
    case segments
    /// The rest of `**`: any bytes.
    case rest
  }

  /// Positions in the pattern, each with the modes in which it is reached. A mode is a bit with a meaning for the
  /// reader of the path.
  package struct States: Sendable, Hashable {
    /// The modes by position; 0 for a position that is not reached.
    fileprivate var modes: [UInt8]
    /// From the first position that is reached to the last one.
    fileprivate var reached = 0..<0

    fileprivate init(count: Int) { modes = Array(repeating: 0, count: count) }

    package var isEmpty: Bool { reached.isEmpty }

    fileprivate mutating func add(_ position: Int, _ more: UInt8) {
      guard more != 0 else { return }
      modes[position] |= more
      reached =
        reached.isEmpty
        ? position..<position + 1 : min(reached.lowerBound, position)..<max(reached.upperBound, position + 1)
    }

    fileprivate mutating func removeAll() {
      for position in reached { modes[position] = 0 }
      reached = 0..<0
    }
  }

  private static let slash = UInt8(ascii: "/")
  /// The only mode of a path with one reading.
  private static let plain: UInt8 = 1
  /// The last position is the end of the pattern.
  private let tokens: [Token]

  package init(_ pattern: PathPattern) {
    tokens = pattern.segments.flatMap { segment -> [Token] in
      switch segment {
      case .anySegments: [.segments, .rest]
      case .glob(let bytes): [.byte(Self.slash)] + bytes.map { $0 == UInt8(ascii: "*") ? .run : .byte($0) }
      }
    }
  }

  /// The bytes that occur in the pattern. All other bytes are equivalent.
  package var bytes: Set<UInt8> { Set(tokens.compactMap { if case .byte(let byte) = $0 { byte } else { nil } }) }

  // MARK: a path with one reading

  /// The states before the first byte.
  package var start: States { start(in: Self.plain) }

  package func step(_ states: States, _ byte: UInt8) -> States {
    var next = States(count: tokens.count + 1)
    read(byte, from: states, in: Self.plain, to: Self.plain, into: &next)
    close(&next)
    return next
  }

  /// Whether a path that ends in these states matches.
  package func accepts(_ states: States) -> Bool { states.modes[tokens.count] != 0 }

  // MARK: a path with several readings

  /// The states before the first byte.
  func start(in mode: UInt8) -> States {
    var states = States(count: tokens.count + 1)
    states.add(0, mode)
    close(&states)
    return states
  }

  /// Whether every path that begins with what was read until these states matches.
  func acceptsAnyRest(_ states: States) -> Bool {
    if case .rest? = tokens.last { states.modes[tokens.count - 1] != 0 } else { false }
  }

  /// Replaces the states by those that are reached from them by one byte or by none.
  /// - Parameters:
  ///   - spare: memory, whose contents do not matter.
  ///   - moves: calls `read` and `keep` for each meaning of the byte.
  func advance(
    _ states: inout States, _ spare: inout States, _ moves: (_ states: States, _ next: inout States) -> Void
  ) {
    spare.removeAll()
    moves(states, &spare)
    close(&spare)
    swap(&states, &spare)
  }

  /// Adds the states that are reached when those in one of the modes read a byte.
  func read(
    _ byte: UInt8, from states: States, in modes: UInt8 = .max, to mode: UInt8, into next: inout States
  ) {
    for position in states.reached where position < tokens.count && states.modes[position] & modes != 0 {
      switch tokens[position] {
      case .byte(let wanted): if wanted == byte { next.add(position + 1, mode) }
      case .run: if byte != Self.slash { next.add(position, mode) }
      case .segments: if byte == Self.slash { next.add(position + 1, mode) }
      case .rest: next.add(position, mode)
      }
    }
  }

  /// Adds the states in one of the modes without reading.
  func keep(_ states: States, in modes: UInt8 = .max, as mode: UInt8, into next: inout States) {
    for position in states.reached where states.modes[position] & modes != 0 { next.add(position, mode) }
  }

  /// Adds the states that are reached without reading a byte. They follow in the pattern, so one pass is enough.
  private func close(_ states: inout States) {
    var position = states.reached.lowerBound
    while position < min(states.reached.upperBound, tokens.count) {
      switch tokens[position] {
      case .byte: break
      case .run, .rest: states.add(position + 1, states.modes[position])
      case .segments: states.add(position + 2, states.modes[position])
      }
      position += 1
    }
  }
}

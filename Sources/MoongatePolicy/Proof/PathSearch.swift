import MoongateCore

/// Searches for the shortest path of a pattern that reaches a route past all earlier routes.
///
/// A route with `encoded` also takes paths that programs read differently: each `%2F` and `%5C` is a separator or a
/// part of a name, and each separator after another one counts or not. Such a path reaches the route only if no reading
/// of it matches an earlier route, as in `RouteMatcher`.
///
/// Attack: `/reports/*` is open and takes `%2F`, and its service answers `/reports/a%2Fsalaries` like
/// `/reports/a/salaries`, which a later route protects. A path therefore is one of the pattern if any reading of it
/// is.
struct PathSearch {
  /// One byte of a path, or one of the sequences that need `encoded`.
  private enum Symbol {
    case byte(UInt8)
    case encodedSlash, encodedBackslash
    /// A separator directly after another one.
    case emptySegment

    var text: String {
      switch self {
      case .byte(let byte): String(decoding: [byte], as: UTF8.self)
      case .encodedSlash: "%2F"
      case .encodedBackslash: "%5C"
      case .emptySegment: "/"
      }
    }
  }

  /// One way of reading what was read until now.
  private struct Reading: Hashable {
    let states: PatternAutomaton.States
    let isAfterSeparator: Bool
  }

  private struct Place: Hashable {
    /// As the gateway reads the path: encoded separators are parts of names.
    var route: PatternAutomaton.States
    /// All readings that the pattern may still match, and those of each earlier route.
    var pattern: Set<Reading>
    var rivals: [Set<Reading>]
    /// The number of bytes of the current name, up to 3, if all of them are dots; nil otherwise. An encoded separator
    /// ends a name, too, so that no reading has the names `.` and `..`.
    var dots: Int?
    /// Whether the last byte is `/`.
    var isAfterSlash: Bool

    var endsInDots: Bool { dots == 1 || dots == 2 }
  }

  private static let slash = UInt8(ascii: "/")
  private static let dot = UInt8(ascii: ".")
  /// Stands for an encoded separator that is a part of a name. No pattern contains it.
  private static let data: UInt8 = 0

  private let route: PatternAutomaton
  private let pattern: PatternAutomaton
  private let rivals: [PatternAutomaton]
  private let alphabet: [Symbol]

  /// - Parameter rivals: the patterns of the earlier routes that match the same host and method.
  init(_ pattern: PathPattern, at route: Route, after rivals: [PathPattern]) {
    self.route = PatternAutomaton(route.path)
    self.pattern = PatternAutomaton(pattern)
    self.rivals = rivals.map { PatternAutomaton($0) }
    let named = Set(([self.route, self.pattern] + self.rivals).flatMap(\.bytes)).union([Self.slash])
    let other = Array("xyzabcdefghijklmnopqrstuvw0123456789-_~".utf8).first { !named.contains($0) }
    let encoded: [(EncodedPathBytes, Symbol)] = [
      (.slash, .encodedSlash), (.backslash, .encodedBackslash), (.empty, .emptySegment),
    ]
    // A path without these sequences is preferred as an example.
    alphabet =
      ([other].compactMap(\.self) + named.sorted()).map(Symbol.byte)
      + encoded.filter { route.encoded.contains($0.0) }.map(\.1)
  }

  /// - Returns: nil if no path of the pattern reaches the route.
  func shortest(spending budget: ProofBudget) throws(ProofBudget.Exhausted) -> String? {
    let start = Place(
      route: route.start, pattern: [Reading(states: pattern.start, isAfterSeparator: false)],
      rivals: rivals.map { [Reading(states: $0.start, isAfterSeparator: false)] }, dots: nil, isAfterSlash: false)
    var seen: Set<Place> = []
    var level: [(place: Place, path: String)] = [(start, "")]
    while !level.isEmpty {
      var next: [(place: Place, path: String)] = []
      for (place, path) in level {
        if !path.isEmpty, reaches(place) { return path }
        for symbol in path.isEmpty ? [.byte(Self.slash)] : alphabet {
          // `//host` is refused on every route (RFC 3986 section 4.2).
          if case .emptySegment = symbol, path == "/" { continue }
          guard let reached = read(symbol, at: place), !reached.route.isEmpty, !reached.pattern.isEmpty,
            seen.insert(reached).inserted
          else { continue }
          try budget.spend()
          next.append((reached, path + symbol.text))
        }
      }
      level = next
    }
    return nil
  }

  /// Whether a path that ends here is one of the pattern, and reaches the route.
  private func reaches(_ place: Place) -> Bool {
    route.accepts(place.route) && !place.endsInDots && place.pattern.contains { pattern.accepts($0.states) }
      && !zip(rivals, place.rivals).contains { rival, readings in readings.contains { rival.accepts($0.states) } }
  }

  /// - Returns: nil if requests with such a path are refused before routing.
  private func read(_ symbol: Symbol, at place: Place) -> Place? {
    var next = place
    let isSeparator: Bool
    let bytes: [UInt8]
    switch symbol {
    case .byte(let byte):
      isSeparator = byte == Self.slash
      if isSeparator, place.isAfterSlash { return nil }
      bytes = [byte]
    case .encodedSlash, .encodedBackslash:
      isSeparator = true
      bytes = [Self.data, Self.slash]
    case .emptySegment:
      isSeparator = true
      guard place.isAfterSlash else { return nil }
      bytes = [Self.slash]
    }
    if isSeparator, place.endsInDots { return nil }
    next.route = route.step(place.route, bytes[0])
    next.pattern = step(pattern, place.pattern, bytes)
    next.rivals = zip(rivals, place.rivals).map { step($0, $1, bytes) }
    next.dots = isSeparator ? 0 : bytes[0] == Self.dot ? place.dots.map { min(3, $0 + 1) } : nil
    next.isAfterSlash = bytes[0] == Self.slash
    return next
  }

  /// - Parameter bytes: what the next byte may be.
  private func step(_ automaton: PatternAutomaton, _ readings: Set<Reading>, _ bytes: [UInt8]) -> Set<Reading> {
    var next: Set<Reading> = []
    for reading in readings {
      for byte in bytes {
        let states = automaton.step(reading.states, byte)
        if !states.isEmpty { next.insert(Reading(states: states, isAfterSeparator: byte == Self.slash)) }
        if byte == Self.slash, reading.isAfterSeparator { next.insert(reading) }
      }
    }
    return next
  }
}

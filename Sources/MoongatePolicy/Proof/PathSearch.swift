import MoongateCore

/// Searches for the shortest path of a pattern that reaches a route past all earlier routes.
///
/// A route with `encoded` also takes paths that the service may read as others: `%2F` and `%5C` as a separator, and
/// `//` as `/`. Such a path reaches the route only if no earlier route matches it in either way of reading.
///
/// Attack: `/reports/*` is open and takes `%2F`, and its service answers `/reports/a%2Fsalaries` like
/// `/reports/a/salaries`, which a later route protects. A statement about `/reports/*/salaries` therefore covers this
/// path, too.
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

  /// How far a path is read.
  private struct Reading: Hashable {
    var route: PatternAutomaton.States
    var pattern: PatternAutomaton.States
    /// Of each earlier route.
    var rivals: [PatternAutomaton.States]
    /// The number of bytes of the current segment, up to 3, if all of them are dots; nil otherwise.
    var dots: Int?

    /// Whether a path that ends here has `.` or `..` as its last segment.
    var endsInDots: Bool { dots == 1 || dots == 2 }
  }

  private struct Place: Hashable {
    /// As the gateway reads the path.
    var strict: Reading
    /// As a service may read it; nil as long as there is no difference.
    var loose: Reading?
  }

  private static let slash = UInt8(ascii: "/")
  private static let dot = UInt8(ascii: ".")
  /// Stands for a byte that is data, and that no pattern contains.
  private static let data: UInt8 = 0

  private let route: PatternAutomaton
  private let pattern: PatternAutomaton
  private let rivals: [PatternAutomaton]
  private let encoded: EncodedPathBytes
  private let alphabet: [Symbol]

  /// - Parameter rivals: the patterns of the earlier routes that match the same host and method.
  init(_ pattern: PathPattern, at route: Route, after rivals: [PathPattern]) {
    self.route = PatternAutomaton(route.path)
    self.pattern = PatternAutomaton(pattern)
    self.rivals = rivals.map(PatternAutomaton.init)
    encoded = route.encoded
    let named = Set(([self.route, self.pattern] + self.rivals).flatMap(\.bytes)).union([Self.slash])
    let other = Array("xyzabcdefghijklmnopqrstuvw0123456789-_~".utf8).first { !named.contains($0) }
    // A path without these sequences is preferred as an example.
    alphabet =
      ([other].compactMap(\.self) + named.sorted()).map(Symbol.byte)
      + (encoded.contains(.slash) ? [.encodedSlash] : []) + (encoded.contains(.backslash) ? [.encodedBackslash] : [])
      + (encoded.contains(.empty) ? [.emptySegment] : [])
  }

  /// - Returns: nil if no path of the pattern reaches the route.
  func shortest(spending budget: ProofBudget) throws(ProofBudget.Exhausted) -> String? {
    let start = Reading(route: route.start, pattern: pattern.start, rivals: rivals.map(\.start), dots: nil)
    var seen: Set<Place> = []
    var level: [(place: Place, path: String)] = [(Place(strict: start, loose: nil), "")]
    while !level.isEmpty {
      var next: [(place: Place, path: String)] = []
      for (place, path) in level {
        if !path.isEmpty, reaches(place) { return path }
        for symbol in path.isEmpty ? [.byte(Self.slash)] : alphabet {
          guard let reached = read(symbol, at: place, isFirst: path.isEmpty), isOpen(reached),
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
    let readings = [place.strict, place.loose].compactMap(\.self)
    return route.accepts(place.strict.route) && readings.contains { pattern.accepts($0.pattern) }
      && readings.allSatisfy { reading in
        !reading.endsInDots && !zip(rivals, reading.rivals).contains { $0.accepts($1) }
      }
  }

  /// Whether a longer path can still reach the route.
  private func isOpen(_ place: Place) -> Bool {
    !place.strict.route.isEmpty && !(place.strict.pattern.isEmpty && place.loose?.pattern.isEmpty ?? true)
  }

  /// - Returns: nil if requests with such a path are refused before routing.
  private func read(_ symbol: Symbol, at place: Place, isFirst: Bool) -> Place? {
    let isAfterSlash = !isFirst && place.strict.dots == 0
    switch symbol {
    case .byte(let byte):
      if byte == Self.slash, isAfterSlash || place.strict.endsInDots { return nil }
      var reached = Place(strict: step(place.strict, byte), loose: place.loose)
      if let loose = place.loose {
        guard let next = loosely(loose, byte) else { return nil }
        reached.loose = next
      }
      return reached
    case .encodedSlash, .encodedBackslash:
      guard let next = loosely(place.loose ?? place.strict, Self.slash) else { return nil }
      return Place(strict: step(place.strict, Self.data), loose: next)
    case .emptySegment:
      guard isAfterSlash else { return nil }
      return Place(strict: step(place.strict, Self.slash), loose: place.loose ?? place.strict)
    }
  }

  /// Reads a byte as a service may do that reads several separators as one.
  /// - Returns: nil if the path has a segment `.` or `..` for such a service, because those are refused.
  private func loosely(_ reading: Reading, _ byte: UInt8) -> Reading? {
    guard byte == Self.slash else { return step(reading, byte) }
    if reading.endsInDots { return nil }
    return reading.dots == 0 ? reading : step(reading, byte)
  }

  private func step(_ reading: Reading, _ byte: UInt8) -> Reading {
    Reading(
      route: route.step(reading.route, byte), pattern: pattern.step(reading.pattern, byte),
      rivals: zip(rivals, reading.rivals).map { $0.step($1, byte) },
      dots: byte == Self.slash ? 0 : byte == Self.dot ? reading.dots.map { min(3, $0 + 1) } : nil)
  }
}

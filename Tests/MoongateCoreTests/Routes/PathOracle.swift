import MoongateCore

/// What a path leads to, by definition: lists all readings of the path and compares each name by name. It shares no
/// code with `RouteMatcher` and takes exponential time.
struct PathOracle {
  enum Answer: Equatable {
    case route(Int)
    case none, refused
  }

  typealias Names = [[UInt8]]

  private enum Token: Equatable {
    case byte(UInt8)
    case slash, encodedSlash, encodedBackslash

    /// As part of a name.
    var asData: UInt8? {
      switch self {
      case .byte(let byte): byte
      case .encodedSlash: 0
      case .encodedBackslash: 1
      case .slash: nil
      }
    }
  }

  private static let own: [[[UInt8]]] = [["auth"], ["api", "auth"], [".well-known"]].map { $0.map { Array($0.utf8) } }
  private static let semicolon = UInt8(ascii: ";")
  private static let dots: [[UInt8]] = [Array(".".utf8), Array("..".utf8)]

  let routes: [Route]

  /// - Parameter path: a path without overlong encodings.
  func answer(_ path: String, host: String, method: String) -> Answer {
    guard let tokens = Self.tokens(path), let needed = Self.needed(tokens) else { return .refused }
    let taken = routes.reduce(into: EncodedPathBytes()) { $0.formUnion($1.encoded) }
    guard needed.isSubset(of: taken) else { return .refused }
    let data = Self.names(tokens) { _ in false }
    guard let index = first(data, host, method) else { return .none }
    guard needed.isSubset(of: routes[index].encoded) else { return .refused }
    if needed.isEmpty { return .route(index) }
    for reading in Self.readings(of: path) {
      if Self.own.contains(where: { reading.starts(with: $0) }) { return .refused }
      if let earlier = first(reading, host, method), earlier < index { return .refused }
    }
    return .route(index)
  }

  /// The first route that matches the names.
  func first(_ names: Names, _ host: String, _ method: String) -> Int? {
    routes.firstIndex { route in
      let isForMethod =
        route.methods.map { $0.contains(method) || method == "HEAD" && $0.contains("GET") } ?? true
      return (route.host ?? host) == host && isForMethod && Self.matches(route.path.segments[...], names[...])
    }
  }

  /// All readings of a valid path. Each `%2F` and `%5C` separates names or belongs to one, and each empty name that is
  /// not the last counts or not.
  static func readings(of path: String) -> [Names] {
    guard let tokens = tokens(path) else { return [] }
    let unclear = tokens.indices.filter { tokens[$0] == .encodedSlash || tokens[$0] == .encodedBackslash }
    return (0..<1 << unclear.count).flatMap { choice -> [Names] in
      let separators = Set(unclear.indices.filter { choice >> $0 & 1 == 1 }.map { unclear[$0] })
      let names = names(tokens) { separators.contains($0) }
      let empty = names.indices.dropLast().filter { names[$0].isEmpty }
      return (0..<1 << empty.count).map { choice in
        let dropped = Set(empty.indices.filter { choice >> $0 & 1 == 1 }.map { empty[$0] })
        return names.indices.filter { !dropped.contains($0) }.map { names[$0] }
      }
    }
  }

  /// The number of choices that a reading consists of.
  static func choices(in path: String) -> Int {
    guard let tokens = tokens(path) else { return 0 }
    let unclear = tokens.count { $0 == .encodedSlash || $0 == .encodedBackslash }
    return unclear + names(tokens) { _ in true }.count { $0.isEmpty }
  }

  /// - Returns: nil if a byte is not allowed.
  private static func tokens(_ path: String) -> [Token]? {
    var tokens: [Token] = []
    var rest = Array(path.utf8)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "/"): tokens.append(.slash)
      case UInt8(ascii: "%"):
        let digits = String(decoding: rest.prefix(2), as: UTF8.self)
        guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit), let value = UInt8(digits, radix: 16),
          value >= 0x20, value != 0x7f
        else { return nil }
        rest = rest.dropFirst(2)
        tokens.append(
          value == UInt8(ascii: "/") ? .encodedSlash : value == UInt8(ascii: "\\") ? .encodedBackslash : .byte(value))
      case 0x21...0x7e where byte != UInt8(ascii: "#") && byte != UInt8(ascii: "\\"): tokens.append(.byte(byte))
      default: return nil
      }
    }
    return tokens
  }

  /// The bytes that the path needs from its route; nil if it is not in normal form.
  private static func needed(_ tokens: [Token]) -> EncodedPathBytes? {
    guard tokens.first == .slash, tokens.dropFirst().first != .slash else { return nil }
    let pieces = tokens.dropFirst().split(omittingEmptySubsequences: false) { token in
      if case .byte = token { false } else { true }
    }
    for (index, piece) in pieces.enumerated() {
      let bytes = piece.compactMap(\.asData)
      let name = Array(bytes.prefix { $0 != semicolon })
      if dots.contains(name) { return nil }
      if name.isEmpty, !bytes.isEmpty, index < pieces.count - 1 { return nil }
    }
    var needed: EncodedPathBytes = []
    if tokens.contains(.encodedSlash) { needed.insert(.slash) }
    if tokens.contains(.encodedBackslash) { needed.insert(.backslash) }
    if zip(tokens, tokens.dropFirst()).contains(where: { $0 == .slash && $1 == .slash }) { needed.insert(.empty) }
    return needed
  }

  /// The names without their parameters.
  /// - Parameter separates: whether the encoded separator at the index separates names.
  private static func names(_ tokens: [Token], _ separates: (Int) -> Bool) -> Names {
    var names: Names = []
    for (index, token) in tokens.enumerated() {
      let separator = token == .slash || (token == .encodedSlash || token == .encodedBackslash) && separates(index)
      if separator {
        names.append([])
      } else if let byte = token.asData {
        names[names.count - 1].append(byte)
      }
    }
    return names.map { Array($0.prefix { $0 != semicolon }) }
  }

  private static func matches(_ pattern: ArraySlice<PathPattern.Segment>, _ names: ArraySlice<[UInt8]>) -> Bool {
    switch pattern.first {
    case nil: names.isEmpty
    case .anySegments:
      matches(pattern.dropFirst(), names) || !names.isEmpty && matches(pattern, names.dropFirst())
    case .glob(let glob):
      !names.isEmpty && matches(glob[...], names[names.startIndex][...])
        && matches(pattern.dropFirst(), names.dropFirst())
    }
  }

  private static func matches(_ glob: ArraySlice<UInt8>, _ name: ArraySlice<UInt8>) -> Bool {
    switch glob.first {
    case nil: name.isEmpty
    case UInt8(ascii: "*"):
      matches(glob.dropFirst(), name) || !name.isEmpty && matches(glob, name.dropFirst())
    case let byte?: name.first == byte && matches(glob.dropFirst(), name.dropFirst())
    }
  }
}

/// Finds the route of a request: the first, in the operator's order, whose host, path and method match.
///
/// Patterns are compiled once per generation, so that the common ones (`/x/**`, `/x`) are simple byte comparisons.
package struct RouteMatcher: Sendable {
  private struct Entry: Sendable {
    let host: String?
    let path: CompiledPattern
    let methods: Set<[UInt8]>?
  }

  let routes: [Route]
  /// The bytes that at least one route takes (`Route.encoded`). Other paths with such bytes are refused at once.
  package let encoded: EncodedPathBytes
  /// The patterns for paths with such bytes; empty if no route takes any.
  let automata: [PatternAutomaton]
  private let entries: [Entry]

  package init(_ table: RouteTable) {
    routes = table.routes
    encoded = table.routes.reduce(into: []) { $0.formUnion($1.encoded) }
    automata = encoded.isEmpty ? [] : table.routes.map { PatternAutomaton($0.path) }
    entries = table.routes.map { route in
      var methods = route.methods
      // RFC 9110 section 9.3.2: HEAD is GET without the content.
      if let named = methods, named.contains("GET") { methods?.insert("HEAD") }
      return Entry(
        host: route.host, path: CompiledPattern(route.path),
        methods: methods.map { Set($0.map { Array($0.utf8) }) })
    }
  }

  /// - Parameters:
  ///   - host: canonical, as in `HostName.name`.
  ///   - path: in normal form, decoded (`RequestPath`).
  ///   - method: as sent; names are case-sensitive (RFC 9110 section 9.1).
  /// - Returns: the index of the route in the table; nil if none matches.
  package func match(host: String, path: Span<UInt8>, method: Span<UInt8>) -> Int? {
    for index in entries.indices {
      if let wanted = entries[index].host, host != wanted { continue }
      guard entries[index].path.matches(path), takes(method, entries[index]) else { continue }
      return index
    }
    return nil
  }

  /// Whether the route accepts the host and the method.
  func accepts(_ index: Int, host: String, method: Span<UInt8>) -> Bool {
    (entries[index].host ?? host) == host && takes(method, entries[index])
  }

  private func takes(_ method: Span<UInt8>, _ entry: Entry) -> Bool {
    guard let methods = entry.methods else { return true }
    var name: [UInt8] = []
    for position in 0..<method.count { name.append(method[position]) }
    return methods.contains(name)
  }
}

/// A `PathPattern` compiled for fast matching.
package struct CompiledPattern: Sendable {
  private enum Form: Sendable {
    /// The whole path equals these bytes.
    case literal([UInt8])
    /// The path equals these bytes, or starts with them followed by `/`.
    case below([UInt8])
    case general([PathPattern.Segment])
  }

  private let form: Form

  package init(_ pattern: PathPattern) {
    var literal: [UInt8] = []
    for (index, segment) in pattern.segments.enumerated() {
      switch segment {
      case .glob(let bytes) where !bytes.contains(UInt8(ascii: "*")):
        literal.append(UInt8(ascii: "/"))
        literal += bytes
      case .anySegments where index == pattern.segments.count - 1:
        form = .below(literal)
        return
      default:
        form = .general(pattern.segments)
        return
      }
    }
    form = .literal(literal.isEmpty ? [UInt8(ascii: "/")] : literal)
  }

  /// - Parameter path: decoded, beginning with `/`.
  package func matches(_ path: Span<UInt8>) -> Bool {
    switch form {
    case .literal(let bytes): path.count == bytes.count && Self.begins(path, with: bytes)
    case .below(let bytes):
      // `/x/**` matches `/x`, but not `/xy`.
      Self.begins(path, with: bytes) && (path.count == bytes.count || path[bytes.count] == UInt8(ascii: "/"))
    case .general(let segments): Self.matches(segments, path)
    }
  }

  private static func begins(_ path: Span<UInt8>, with bytes: [UInt8]) -> Bool {
    guard path.count >= bytes.count else { return false }
    for index in bytes.indices where path[index] != bytes[index] { return false }
    return true
  }

  /// Backtracks to the last `**` only. Backtracking further cannot find more matches, and this bounds the time to
  /// segments × length.
  private static func matches(_ segments: [PathPattern.Segment], _ path: Span<UInt8>) -> Bool {
    var pattern = 0
    // The start of the current segment, after its slash; beyond the end + 1 if no segment is left.
    var start = 1
    var retry: (pattern: Int, start: Int)?
    while true {
      if pattern < segments.count, case .anySegments = segments[pattern] {
        retry = (pattern + 1, start)
        pattern += 1
        continue
      }
      let isAtEnd = start > path.count
      if isAtEnd, pattern == segments.count { return true }
      if !isAtEnd, pattern < segments.count, case .glob(let glob) = segments[pattern] {
        let end = segmentEnd(path, start)
        if globMatches(glob, path, start, end) {
          pattern += 1
          start = end + 1
          continue
        }
      }
      // Extend the last `**` by one segment.
      guard let last = retry, last.start <= path.count else { return false }
      let next = segmentEnd(path, last.start) + 1
      retry = (last.pattern, next)
      pattern = last.pattern
      start = next
    }
  }

  private static func segmentEnd(_ path: Span<UInt8>, _ start: Int) -> Int {
    var end = start
    while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
    return end
  }

  private static func globMatches(_ glob: [UInt8], _ path: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
    var pattern = 0
    var index = start
    var star: (pattern: Int, index: Int)?
    while index < end {
      if pattern < glob.count, glob[pattern] == UInt8(ascii: "*") {
        star = (pattern + 1, index)
        pattern += 1
      } else if pattern < glob.count, glob[pattern] == path[index] {
        pattern += 1
        index += 1
      } else if let last = star {
        star = (last.pattern, last.index + 1)
        pattern = last.pattern
        index = last.index + 1
      } else {
        return false
      }
    }
    while pattern < glob.count, glob[pattern] == UInt8(ascii: "*") { pattern += 1 }
    return pattern == glob.count
  }
}

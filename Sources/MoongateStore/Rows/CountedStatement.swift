/// A statement with a variable number of arguments. The text for each number is built once, so that connections keep
/// only few prepared statements.
struct CountedStatement: Sendable {
  /// For larger numbers, the text is built each time.
  private static let usual = 16

  private let texts: [String]
  private let make: @Sendable (Int) -> String

  /// - Parameter make: the text for a number of arguments, 0 or more.
  init(_ make: @escaping @Sendable (Int) -> String) {
    self.make = make
    texts = (0...Self.usual).map(make)
  }

  subscript(count: Int) -> String { count < texts.count ? texts[count] : make(count) }

  /// `?1, ?2, ?3`.
  static func list(_ count: Int) -> String { (0..<count).map { "?\($0 + 1)" }.joined(separator: ", ") }
}

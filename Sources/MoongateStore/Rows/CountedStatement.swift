/// A statement about several things at once: a text for each number of them, made once, so that connections keep few of
/// them prepared.
struct CountedStatement: Sendable {
  /// Of more things than these the text is made each time.
  private static let usual = 16

  private let texts: [String]
  private let make: @Sendable (Int) -> String

  /// - Parameter make: the text for a number of things, 0 or more.
  init(_ make: @escaping @Sendable (Int) -> String) {
    self.make = make
    texts = (0...Self.usual).map(make)
  }

  subscript(count: Int) -> String { count < texts.count ? texts[count] : make(count) }

  /// `?1, ?2, ?3`.
  static func list(_ count: Int) -> String { (0..<count).map { "?\($0 + 1)" }.joined(separator: ", ") }
}

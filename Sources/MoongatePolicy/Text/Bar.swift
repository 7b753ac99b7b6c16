/// A bar of twenty cells.
enum Bar {
  private static let cells = 20

  /// - Parameter empty: what a part of nothing is, from 0 to 1.
  static func text(_ part: Int, of whole: Int, empty: Int = 0) -> String { text(whole > 0 ? Double(part) / Double(whole) : Double(empty)) }

  /// - Parameter share: from 0; more than the whole fills it.
  static func text(_ share: Double) -> String {
    let filled = max(0, min(cells, Int(share * Double(cells))))
    return String(repeating: "█", count: filled) + String(repeating: "░", count: cells - filled)
  }
}

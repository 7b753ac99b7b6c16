/// A text bar of twenty cells.
enum Bar {
  private static let cells = 20

  /// - Parameter isFullWhenEmpty: whether the bar is full if `whole` is zero.
  static func text(_ part: Int, of whole: Int, isFullWhenEmpty: Bool = false) -> String {
    text(cells: whole > 0 ? part * cells / whole : isFullWhenEmpty ? cells : 0)
  }

  /// A bar for a share from 0 to 1. Any share above zero fills at least one cell; shares above 1 fill all cells.
  static func text(_ share: Double) -> String {
    text(cells: share > 0 ? max(1, Int(min(1, share) * Double(cells))) : 0)
  }

  private static func text(cells filled: Int) -> String {
    let filled = min(cells, filled)
    return String(repeating: "█", count: filled) + String(repeating: "░", count: cells - filled)
  }
}

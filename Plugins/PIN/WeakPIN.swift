/// PINs that attackers guess first: repetitions, runs, pairs, keypad lines, dates, and parts of the user's phone
/// number. Computed by rules instead of a list.
enum WeakPIN {
  /// The number of PINs, out of a million, that are refused for all users; verified by a test.
  static let refused = 98_559

  /// - Parameter phones: the user's phone numbers, in E.164.
  static func isWeak(_ pin: PINDigits, phones: [String] = []) -> Bool {
    let digits = pin.digits
    return isRepetitive(digits) || isRun(digits) || isKeypadLine(digits) || isDate(digits)
      || phones.contains { isPart(digits, of: $0) }
  }

  /// Four equal digits in a row, five anywhere, at most two different digits, repeated or mirrored halves or thirds,
  /// pairs.
  private static func isRepetitive(_ pin: [UInt8]) -> Bool {
    let counts = pin.reduce(into: [Int](repeating: 0, count: 10)) { $0[Int($1)] += 1 }
    if counts.contains(where: { $0 >= 5 }) || counts.count(where: { $0 > 0 }) <= 2 { return true }
    if (0...2).contains(where: { start in pin[start..<start + 4].allSatisfy { $0 == pin[start] } }) { return true }
    if pin[..<3].elementsEqual(pin[3...]) || pin.elementsEqual(pin.reversed()) { return true }
    if pin[..<2].elementsEqual(pin[2..<4]), pin[..<2].elementsEqual(pin[4...]) { return true }
    return pin[0] == pin[1] && pin[2] == pin[3] && pin[4] == pin[5]
  }

  /// A constant difference between digits (135791), or four consecutive digits up or down (1234, 9012).
  private static func isRun(_ pin: [UInt8]) -> Bool {
    let steps = zip(pin, pin.dropFirst()).map { (10 + $1 - $0) % 10 }
    if steps.allSatisfy({ $0 == steps[0] }) { return true }
    return (0...2).contains { start in
      [1, 9].contains(steps[start]) && steps[start..<start + 3].allSatisfy { $0 == steps[start] }
    }
  }

  /// Lines of three keys: rows, columns and diagonals, in either direction.
  private static let lines: Set<[UInt8]> = {
    let lines: [[UInt8]] = [
      [1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 4, 7], [2, 5, 8], [3, 6, 9], [1, 5, 9], [3, 5, 7], [5, 8, 0],
    ]
    return Set(lines + lines.map { $0.reversed() })
  }()

  /// Two keypad lines (147258), or the whole middle column.
  private static func isKeypadLine(_ pin: [UInt8]) -> Bool {
    if lines.contains(Array(pin[..<3])), lines.contains(Array(pin[3...])) { return true }
    return (0...2).contains { start in [[2, 5, 8, 0], [0, 8, 5, 2]].contains(Array(pin[start..<start + 4])) }
  }

  /// A date with a two-digit year in any common order, or a month with a year of this or the last century.
  private static func isDate(_ pin: [UInt8]) -> Bool {
    let first = Int(pin[0]) * 10 + Int(pin[1])
    let second = Int(pin[2]) * 10 + Int(pin[3])
    let third = Int(pin[4]) * 10 + Int(pin[5])
    if isDay(first, month: second) || isDay(second, month: first) || isDay(third, month: second) { return true }
    let months = 1...12
    return [19, 20].contains(first) && months.contains(third) || [19, 20].contains(second) && months.contains(first)
  }

  private static func isDay(_ day: Int, month: Int) -> Bool {
    guard (1...12).contains(month) else { return false }
    return (1...[31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]).contains(day)
  }

  /// Six consecutive digits of a phone number, forwards or backwards.
  private static func isPart(_ pin: [UInt8], of phone: String) -> Bool {
    let number = phone.utf8.filter { (48...57).contains($0) }.map { $0 - 48 }
    guard number.count >= pin.count else { return false }
    let reversed = Array(pin.reversed())
    return (0...number.count - pin.count).contains { start in
      let part = number[start..<start + pin.count]
      return part.elementsEqual(pin) || part.elementsEqual(reversed)
    }
  }
}

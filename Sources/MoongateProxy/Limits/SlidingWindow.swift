/// Requests counted in slots of a twentieth of a window. The current slot and the twenty before it cover at least the
/// window, so that no interval of its length contains more requests than the limit.
///
/// Refused requests are not counted. Event loops read the clock at slightly different times: a late request counts in
/// the newest slot.
struct SlidingWindow {
  /// The number of slots that the window is divided into.
  static let parts: Int64 = 20
  private static let slots = parts + 1

  private var requests = InlineArray<21, UInt32>(repeating: 0)
  private var total = 0
  /// The current slot: the time divided by the length of a slot.
  private(set) var newest: Int64 = 0

  /// Counts a request if it is within the limit.
  /// - Parameters:
  ///   - limit: at most `UInt32.max`.
  ///   - slot: the number of the current slot.
  mutating func take(limit: Int, slot: Int64) -> Bool {
    advance(to: slot)
    guard total < limit else { return false }
    total += 1
    requests[Int(newest % Self.slots)] += 1
    return true
  }

  /// The first slot in which a request is within the limit again, after `take` has returned false.
  var nextFreeSlot: Int64 {
    for past in max(0, newest - Self.parts)...newest where requests[Int(past % Self.slots)] > 0 {
      return past + Self.slots
    }
    return newest
  }

  /// Whether it contains no request any more.
  func isIdle(in slot: Int64) -> Bool { slot - newest >= Self.slots }

  private mutating func advance(to slot: Int64) {
    guard slot > newest else { return }
    for past in max(newest + 1, slot - Self.parts)...slot {
      let index = Int(past % Self.slots)
      total -= Int(requests[index])
      requests[index] = 0
    }
    newest = slot
  }
}

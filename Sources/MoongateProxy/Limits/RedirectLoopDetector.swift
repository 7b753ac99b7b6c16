import MoongateCore
import Synchronization

/// Notices a browser that comes back from sign-in again and again without its session, which would go round for ever.
///
/// Sign-in led a client to some place: noted. It arrives there with a session: forgotten. It arrives without one: a
/// bounce. The third bounce in a row is a loop, and is told instead of being led round once more. Nothing is noted of
/// places to which sign-in led nobody, so whoever shares an address with somebody else is not taken for them.
final class RedirectLoopDetector: Sendable {
  private static let mostBounces = 3
  /// How long after the sign-in the arrival is taken for its consequence, in milliseconds.
  private static let arrival: Int64 = 60_000
  private static let memory: Int64 = 600_000
  private static let mostKept = 4096

  private struct Key: Hashable {
    let address: [UInt8]
    let place: String

    init(_ address: ClientAddress, _ place: String) {
      self.address = address.countingKey
      self.place = String(place.prefix(1024))
    }
  }

  private struct Entry {
    var bounces = 0
    var isExpected = false
    var at: Timestamp
  }

  private let entries = Mutex<[Key: Entry]>([:])
  private let count = Atomic<Int>(0)

  /// Whether there is nothing to look for.
  var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  /// Sign-in sends the client there.
  /// - Parameter place: path and query; scheme and host are left out, since a loop may change them.
  func expect(_ address: ClientAddress, at place: String, now: Timestamp) {
    change { entries in
      // Attack: sign-ins without end to new places. All is forgotten then, and who is in a loop goes round a little
      // longer.
      if entries.count >= Self.mostKept { entries = [:] }
      var entry = entries[Key(address, place)] ?? Entry(at: now)
      if now.milliseconds - entry.at.milliseconds >= Self.memory { entry.bounces = 0 }
      entry.isExpected = true
      entry.at = now
      entries[Key(address, place)] = entry
    }
  }

  /// The client arrived, with a session.
  func landed(_ address: ClientAddress, at place: String) { change { $0[Key(address, place)] = nil } }

  /// The client arrived without a session.
  /// - Returns: whether it goes round in a loop. It is forgotten then, so that what follows the explanation is a new
  ///   try.
  func bounced(_ address: ClientAddress, at place: String, now: Timestamp) -> Bool {
    change { entries in
      guard var entry = entries[Key(address, place)], entry.isExpected else { return false }
      guard now.milliseconds - entry.at.milliseconds < Self.arrival else {
        entries[Key(address, place)] = nil
        return false
      }
      entry.isExpected = false
      entry.bounces += 1
      entries[Key(address, place)] = entry.bounces >= Self.mostBounces ? nil : entry
      return entry.bounces >= Self.mostBounces
    }
  }

  /// Path and query of a Location; nil for one that leads back into our own pages.
  static func place(_ location: String) -> String? {
    var place = location[...]
    if let scheme = location.firstRange(of: "://") {
      place = location[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
      if place.first != "/" { place = "/" + place }
    }
    place = place.prefix { $0 != "#" }
    return place.hasPrefix("/auth/") ? nil : String(place)
  }

  private func change<Result>(_ body: (inout [Key: Entry]) -> Result) -> Result {
    entries.withLock { entries in
      defer { count.store(entries.count, ordering: .relaxed) }
      return body(&entries)
    }
  }
}

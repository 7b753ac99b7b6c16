import Crypto
import MoongateCore
import Synchronization

/// Detects a browser that returns from sign-in again and again without its session.
///
/// When sign-in redirects a client to a target, the target is recorded. An arrival with a session deletes the entry; an
/// arrival without one is a bounce. After the third bounce in a row, the client gets an explanation instead of another
/// redirect. Targets that sign-in did not redirect to are never recorded, so other clients with the same address are
/// not affected.
final class RedirectLoopDetector: Sendable {
  private static let maxBounces = 3
  /// The maximum time between sign-in and the related arrival, in milliseconds.
  private static let arrival: Int64 = 60_000
  private static let retention: Int64 = 600_000
  private static let maxEntries = 4096

  private struct Key: Hashable {
    let address: [UInt8]
    /// The hash of the whole place, which may have thousands of characters and differ only in the last one.
    let place: SHA256.Digest

    init(_ address: ClientAddress, _ place: String) {
      self.address = address.countingKey
      self.place = SHA256.hash(data: Array(place.utf8))
    }
  }

  private struct Entry {
    var bounces = 0
    var isExpected = false
    var at: Timestamp
  }

  private let entries = Mutex<[Key: Entry]>([:])
  private let count = Atomic<Int>(0)

  /// Whether there are no entries.
  var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  /// Records that sign-in redirects the client to a target.
  /// - Parameter place: path and query. Scheme and host are omitted because a loop may change them.
  func expect(_ address: ClientAddress, at place: String, now: Timestamp) {
    change { entries in
      // Attack: endless sign-ins with new targets. All entries are then discarded, and a client in a loop is detected a
      // little later.
      if entries.count >= Self.maxEntries { entries = [:] }
      var entry = entries[Key(address, place)] ?? Entry(at: now)
      if now.milliseconds - entry.at.milliseconds >= Self.retention { entry.bounces = 0 }
      entry.isExpected = true
      entry.at = now
      entries[Key(address, place)] = entry
    }
  }

  /// Records that the client arrived with a session.
  func recordSignedInArrival(_ address: ClientAddress, at place: String) { change { $0[Key(address, place)] = nil } }

  /// Records that the client arrived without a session.
  /// - Returns: whether the client is in a loop. The entry is then deleted, so that the explanation is followed by a
  ///   fresh attempt.
  func bounced(_ address: ClientAddress, at place: String, now: Timestamp) -> Bool {
    change { entries in
      guard var entry = entries[Key(address, place)], entry.isExpected else { return false }
      guard now.milliseconds - entry.at.milliseconds < Self.arrival else {
        entries[Key(address, place)] = nil
        return false
      }
      entry.isExpected = false
      entry.bounces += 1
      entries[Key(address, place)] = entry.bounces >= Self.maxBounces ? nil : entry
      return entry.bounces >= Self.maxBounces
    }
  }

  /// Path and query of a Location; nil if it leads to a gateway page.
  static func place(_ location: String) -> String? {
    var place = location[...]
    if !location.hasPrefix("/"), let scheme = location.firstRange(of: "://") {
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

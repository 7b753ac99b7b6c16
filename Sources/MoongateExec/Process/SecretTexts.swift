import Foundation
import Synchronization

/// The strings that must not be logged: the secrets in a program's settings, and for a while the user data of its
/// calls.
///
/// A program may print everything that it receives, for example while it is being debugged.
final class SecretTexts: Sendable {
  /// Output about a call may be buffered and arrive later.
  private static let retention: Duration = .seconds(60)
  /// A shorter string would hide most of every line and is not worth redacting.
  private static let shortest = TextMarks.head

  private struct State {
    var marks = TextMarks()
    /// In order of arrival; those before `head` are already removed.
    var passing: [(mark: TextMarks.Mark, until: ContinuousClock.Instant)] = []
    var head = 0
    /// Until this time, a program may still print a string that was dropped because the table was full.
    var unknownUntil: ContinuousClock.Instant?

    mutating func forgetOldest() {
      marks.remove(passing[head].mark)
      head += 1
    }
  }

  private let most: Int
  private let state = Mutex(State())

  /// - Parameter most: the maximum number of strings from calls, about fifty bytes each: those of four hundred calls
  ///   per second for a minute.
  init(_ lasting: some Sequence<String>, most: Int = 131_072) {
    self.most = most
    add(lasting: lasting)
  }

  func add(lasting texts: some Sequence<String>) {
    let marks = Self.marks(texts)
    state.withLock { state in for mark in marks { state.marks.add(mark) } }
  }

  func add(_ texts: some Sequence<String>, at now: ContinuousClock.Instant) {
    let until = now + Self.retention
    let marks = Self.marks(texts)
    state.withLock { state in
      while state.head < state.passing.count, state.passing[state.head].until < now { state.forgetOldest() }
      for mark in marks {
        state.marks.add(mark)
        state.passing.append((mark, until))
      }
      while state.passing.count - state.head > most {
        // A string that is no longer known cannot be redacted, so lines are withheld until it has expired.
        state.unknownUntil = max(state.unknownUntil ?? now, state.passing[state.head].until)
        state.forgetOldest()
      }
      // Compact rarely, so that each entry is moved only once on average.
      if state.head > state.passing.count / 2 {
        state.passing.removeFirst(state.head)
        state.head = 0
      }
    }
  }

  /// The strings and their Unicode normalization forms, because programs and their libraries normalize text.
  private static func marks(_ texts: some Sequence<String>) -> Set<TextMarks.Mark> {
    var marks: Set<TextMarks.Mark> = []
    for text in texts where text.utf8.count >= shortest {
      marks.insert(TextMarks.Mark(Array(text.utf8)))
      guard !text.utf8.allSatisfy({ $0 < 0x80 }) else { continue }
      for other in [text.precomposedStringWithCanonicalMapping, text.decomposedStringWithCanonicalMapping]
      where other.utf8.count >= shortest {
        marks.insert(TextMarks.Mark(Array(other.utf8)))
      }
    }
    return marks
  }

  /// The text with all known strings redacted.
  func redacted(_ text: String, at now: ContinuousClock.Instant = .now) -> String {
    let bytes = Array(text.utf8)
    let found: [Range<Int>]? = state.withLock { state in
      if let until = state.unknownUntil, now <= until { return nil }
      return state.marks.ranges(in: bytes)
    }
    guard let found else { return "[withheld: too many calls to redact]" }
    if found.isEmpty { return text }
    var shown: [UInt8] = []
    var start = 0
    for range in found {
      shown += bytes[start..<range.lowerBound]
      shown += Array("[redacted]".utf8)
      start = range.upperBound
    }
    return String(decoding: shown + bytes[start...], as: UTF8.self)
  }
}

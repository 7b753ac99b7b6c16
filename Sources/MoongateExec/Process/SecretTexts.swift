import Foundation
import Synchronization

/// What must not stand in a log: the secrets that a program was given for good, and what each call tells it of a
/// person, for a while.
///
/// A program is a stranger's; what it prints while it debugs is whatever it was told.
final class SecretTexts: Sendable {
  /// What a program prints about a call reaches us a little later, and buffered.
  private static let memory: Duration = .seconds(60)
  /// A shorter text would blot out half of every line, and is not worth hiding.
  private static let shortest = TextMarks.head

  private struct State {
    var marks = TextMarks()
    /// In the order of their coming; those before `head` are forgotten already.
    var passing: [(mark: TextMarks.Mark, until: ContinuousClock.Instant)] = []
    var head = 0
    /// Until when a program may still print what was forgotten for want of room.
    var unknownUntil: ContinuousClock.Instant?

    mutating func forgetOldest() {
      marks.remove(passing[head].mark)
      head += 1
    }
  }

  private let most: Int
  private let state = Mutex(State())

  /// - Parameter most: texts of calls that are remembered, some fifty bytes each: of four hundred calls a second for a
  ///   minute.
  init(_ lasting: some Sequence<String>, most: Int = 131_072) {
    self.most = most
    add(lasting: lasting)
  }

  func add(lasting texts: some Sequence<String>) {
    let marks = Self.marks(texts)
    state.withLock { state in for mark in marks { state.marks.add(mark) } }
  }

  func add(_ texts: some Sequence<String>, at now: ContinuousClock.Instant) {
    let until = now + Self.memory
    let marks = Self.marks(texts)
    state.withLock { state in
      while state.head < state.passing.count, state.passing[state.head].until < now { state.forgetOldest() }
      for mark in marks {
        state.marks.add(mark)
        state.passing.append((mark, until))
      }
      while state.passing.count - state.head > most {
        // What cannot be found must not be shown: lines are withheld until nobody prints this one any more.
        state.unknownUntil = max(state.unknownUntil ?? now, state.passing[state.head].until)
        state.forgetOldest()
      }
      // So seldom that each text is moved once.
      if state.head > state.passing.count / 2 {
        state.passing.removeFirst(state.head)
        state.head = 0
      }
    }
  }

  /// Each text once, as it is and as Unicode may write it otherwise: programs and their libraries normalise what they
  /// are told.
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

  /// The text without any of them.
  func redacted(_ text: String, at now: ContinuousClock.Instant = .now) -> String {
    let bytes = Array(text.utf8)
    let found: [Range<Int>]? = state.withLock { state in
      if let until = state.unknownUntil, now <= until { return nil }
      return state.marks.ranges(in: bytes)
    }
    guard let found else { return "[withheld: more calls than it is remembered what they hold]" }
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

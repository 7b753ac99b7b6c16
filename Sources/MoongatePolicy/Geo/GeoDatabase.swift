import CMaxMind
import Glibc
import MoongateCore
import Synchronization

/// A database of client addresses in MaxMind's format (.mmdb): a copy of a file in memory, which `reload` renews.
///
/// The copy is complete or not there: a file that is being written does not change it.
package final class GeoDatabase: Sendable {
  /// What is looked up in the database.
  package enum Contents: String, Sendable {
    /// `geo.database`.
    case countries
    /// `geo.asn`: the numbers of autonomous systems.
    case systems = "autonomous systems"
  }

  /// The end of the year 9999, in Unix time.
  private static let latest: UInt64 = 253_402_300_799

  /// Why a file cannot be used.
  package struct Problem: Error {
    package let message: String
  }

  /// The properties that identify a state of a file.
  private struct FileState: Equatable {
    private var file: UInt64 = 0
    private var size: Int64 = -1
    private var seconds = 0
    private var nanoseconds = 0

    init(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return }
      file = UInt64(status.st_ino)
      size = Int64(status.st_size)
      seconds = status.st_mtim.tv_sec
      nanoseconds = status.st_mtim.tv_nsec
    }
  }

  /// An open copy. It does not change, so any number of threads can read it.
  private final class Copy: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ path: String, holding contents: Contents) throws(Problem) {
      var problem = [CChar](repeating: 0, count: 200)
      guard let opened = cmaxmind_open(path, &problem, problem.count) else {
        throw Problem(
          message: String(decoding: problem.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
      }
      pointer = opened
      var hasCountries = false
      var hasNumbers = false
      cmaxmind_contents(opened, &hasCountries, &hasNumbers)
      guard contents == .countries ? hasCountries : hasNumbers else {
        throw Problem(message: "it has no \(contents.rawValue): its type is \"\(type)\"")
      }
    }

    deinit { cmaxmind_close(pointer) }

    /// Only what can be printed: the text is from the file.
    var type: String {
      String(
        String(cString: cmaxmind_type(pointer)).unicodeScalars.prefix(60).filter { (0x20...0x7e).contains($0.value) })
    }
  }

  private struct State {
    var copy: Copy
    /// The file as it was when it was read last, with success or without.
    var file: FileState
    /// The file at the last look.
    var seen: FileState?
  }

  package let path: String
  package let contents: Contents
  private let state: Mutex<State>

  /// Reads a file of at most 1 GiB.
  package init(_ path: String, of contents: Contents) throws(Problem) {
    self.path = path
    self.contents = contents
    // The file may change while it is read. It is then read again.
    let file = FileState(path)
    state = Mutex(State(copy: try Copy(path, holding: contents), file: file))
  }

  private var copy: Copy { state.withLock { $0.copy } }

  /// When the database was made.
  package var builtAt: Timestamp {
    Timestamp(milliseconds: Int64(min(cmaxmind_built(copy.pointer), Self.latest)) * 1000)
  }

  /// How a file differs from what was read last, with success or without.
  package enum Change: Sendable {
    case none
    /// It has changed since the last look, so it may not be complete yet.
    case goesOn
    case isComplete
  }

  /// Looks at the file. Call it at intervals: a file that is the same as at the last call is complete.
  package func look() -> Change {
    let now = FileState(path)
    return state.withLock { state in
      defer { state.seen = now }
      if state.file == now { return .none }
      return state.seen == now ? .isComplete : .goesOn
    }
  }

  /// Reads the file again.
  /// - Throws: why it cannot be used. The copy then stays as it is.
  package func reload() throws(Problem) {
    let file = FileState(path)
    state.withLock { $0.file = file }
    let copy = try Copy(path, holding: contents)
    state.withLock { $0.copy = copy }
  }

  /// Two capital letters; nil if the database does not know the country.
  package func country(of address: ClientAddress) -> String? {
    var letters: (CChar, CChar) = (0, 0)
    let copy = copy
    let isKnown = withUnsafeMutableBytes(of: &letters) { letters in
      cmaxmind_country(
        copy.pointer, address.bytes, address.bytes.count, letters.baseAddress?.assumingMemoryBound(to: CChar.self))
    }
    guard isKnown else { return nil }
    return String(decoding: [UInt8(bitPattern: letters.0), UInt8(bitPattern: letters.1)], as: UTF8.self)
  }

  /// The number of the autonomous system; nil if the database does not know it.
  package func system(of address: ClientAddress) -> Int? {
    var number: UInt32 = 0
    return cmaxmind_number(copy.pointer, address.bytes, address.bytes.count, &number) ? Int(number) : nil
  }
}

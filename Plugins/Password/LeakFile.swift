import Foundation

/// A file of leaked passwords: lines `SHA1:COUNT` in the order of the hashes, as the downloader of Have I Been Pwned
/// writes them. It may have many GiB and is never read as a whole. Lines end with LF or CRLF, and digits may be of
/// either case. The file is opened for each lookup, so that it may be replaced at any time.
final class LeakFile {
  /// In bytes: a hash, a colon, a number of 19 digits and CRLF, and a few more to notice that a line is longer.
  private static let longestLine = 68
  /// The size in bytes at which the search ends and lines are read in order.
  private static let block = 4_096
  /// What `examine` reads: so many lines from the beginning, and so many places of the whole file.
  private static let firstLines = 1_000
  private static let places = 256
  /// Up to this offset, problems are reported with a line number. Beyond it, counting lines would take too long.
  private static let mostCounted = 64 << 20

  private let name: String
  private let descriptor: Int32
  private let size: Int

  init(_ path: String) throws(LeakFault) {
    name = path.split(separator: "/").last.map(String.init) ?? path
    // A FIFO would wait for a writer.
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw LeakFault("\(name) cannot be read: \(String(cString: strerror(errno)))") }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw LeakFault("\(name) is not a file")
    }
    size = Int(status.st_size)
  }

  deinit { close(descriptor) }

  /// Whether the file has the hash.
  /// - Parameter digits: 40 upper-case hexadecimal digits.
  /// - Throws: if a line that was read has another form or is out of order.
  func contains(_ digits: [UInt8]) throws(LeakFault) -> Bool {
    // The line of the hash begins at `low` or later, and before `high`. A line begins at `low`.
    var (low, high) = (0, size)
    var (lowest, highest): ([UInt8]?, [UInt8]?)
    while high - low > Self.block {
      let middle = low + (high - low) / 2
      guard let start = try lineStart(from: middle), start < high else {
        high = middle
        continue
      }
      let found = try line(at: start).line
      if let lowest, found.digits.lexicographicallyPrecedes(lowest) { throw outOfOrder(at: start) }
      if let highest, highest.lexicographicallyPrecedes(found.digits) { throw outOfOrder(at: start) }
      if found.digits == digits { return found.isLeaked }
      if found.digits.lexicographicallyPrecedes(digits) {
        (low, lowest) = (start, found.digits)
      } else {
        (high, highest) = (start, found.digits)
      }
    }
    var before: [UInt8]?
    while low < high {
      let (found, next) = try line(at: low)
      if let before, found.digits.lexicographicallyPrecedes(before) { throw outOfOrder(at: low) }
      if found.digits == digits { return found.isLeaked }
      (before, low) = (found.digits, next)
    }
    return false
  }

  /// Looks for a wrong form or order at the beginning, at the end and at places between them. Reads a bounded number of
  /// bytes.
  func examine() throws(LeakFault) {
    guard size > 0 else { throw LeakFault("\(name) is empty: it must have lines SHA1:COUNT") }
    var before: [UInt8]?
    func check(_ start: Int) throws(LeakFault) -> Int {
      let (found, next) = try line(at: start)
      if let before, found.digits.lexicographicallyPrecedes(before) { throw outOfOrder(at: start) }
      before = found.digits
      return next
    }
    var start = 0
    for _ in 0..<Self.firstLines where start < size { start = try check(start) }
    let walked = start
    for place in 1...Self.places {
      let offset = size / (Self.places + 1) * place
      guard offset > walked, let start = try lineStart(from: offset), start < size else { continue }
      _ = try check(start)
    }
    // The last line may have no line feed.
    let tail = max(walked, size - 2 * Self.longestLine)
    var last = tail == walked ? walked : try lineStart(from: tail) ?? size
    while last < size { last = try check(last) }
  }

  // MARK: - Lines

  /// The first line that begins at the offset or later; nil if none does.
  private func lineStart(from offset: Int) throws(LeakFault) -> Int? {
    if offset == 0 { return 0 }
    let bytes = try read(offset - 1, Self.longestLine)
    if let feed = bytes.firstIndex(of: 0x0A) { return offset + feed < size ? offset + feed : nil }
    guard offset - 1 + bytes.count >= size else { throw malformed(at: offset) }
    return nil
  }

  private func line(at start: Int) throws(LeakFault) -> (line: LeakLine, next: Int) {
    let bytes = try read(start, Self.longestLine)
    let feed = bytes.firstIndex(of: 0x0A)
    guard feed != nil || start + bytes.count >= size,
      let found = LeakLine(bytes[..<(feed ?? bytes.count)], digits: LeakKey.count)
    else { throw malformed(at: start) }
    return (found, start + (feed.map { $0 + 1 } ?? bytes.count))
  }

  private func read(_ offset: Int, _ count: Int) throws(LeakFault) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: min(count, max(0, size - offset)))
    var filled = 0
    while filled < bytes.count {
      let got = bytes.withUnsafeMutableBytes { buffer in
        pread(descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled, off_t(offset + filled))
      }
      if got < 0, errno == EINTR { continue }
      // A file that became shorter is one that is being written.
      guard got > 0 else { throw LeakFault("\(name) cannot be read at byte \(offset)") }
      filled += got
    }
    return bytes
  }

  // MARK: - Problems

  private func malformed(at offset: Int) -> LeakFault {
    LeakFault("\(place(of: offset)) is not a line SHA1:COUNT, with 40 hexadecimal digits and a number")
  }

  private func outOfOrder(at offset: Int) -> LeakFault {
    LeakFault("\(place(of: offset)) is out of order: sort the file by its hashes")
  }

  /// `FILE:LINE`, or the offset in a part of the file whose lines are not counted.
  private func place(of offset: Int) -> String {
    guard offset <= Self.mostCounted else { return "\(name), byte \(offset)," }
    var (line, at) = (1, 0)
    while at < offset, let bytes = try? read(at, min(1 << 16, offset - at)), !bytes.isEmpty {
      line += bytes.count { $0 == 0x0A }
      at += bytes.count
    }
    return "\(name):\(line):"
  }
}

import Foundation
import MoongateCore

/// `file { … }`: one event a line, on the disk when it is taken in.
///
/// The file is opened for each batch, so that whatever moves it away, such as logrotate, needs to tell nobody.
package struct AuditFile: AuditSink {
  private let settings: AuditFileSettings

  package init(_ settings: AuditFileSettings) { self.settings = settings }

  package func take(_ lines: [[UInt8]], at now: Timestamp) async throws(AuditSinkFault) {
    var file = try OpenFile(settings.path)
    if file.size >= settings.rotate, file.isRegular {
      file.close()
      try rotate()
      file = try OpenFile(settings.path)
    }
    defer { file.close() }
    let size = try file.endWithWholeLine()
    do throws(AuditSinkFault) {
      try file.write(lines.flatMap { $0 + [UInt8(ascii: "\n")] })
      try file.sync()
    } catch {
      // Half a batch would stand there twice, and half a line would spoil the next one.
      file.cut(to: size)
      throw error
    }
  }

  /// `audit.log` becomes `audit.log.1`, that one `audit.log.2`, and so on; the oldest goes.
  private func rotate() throws(AuditSinkFault) {
    for number in stride(from: settings.keep, through: 1, by: -1) {
      let from = number == 1 ? settings.path : "\(settings.path).\(number - 1)"
      guard rename(from, "\(settings.path).\(number)") != 0, errno != ENOENT else { continue }
      throw AuditSinkFault("\(from) cannot be renamed: \(String(cString: strerror(errno)))")
    }
  }
}

/// A file that lines are added to.
private struct OpenFile {
  private let descriptor: Int32
  private let path: String
  let size: Int
  /// A device or a pipe has no end that could be looked at.
  let isRegular: Bool

  /// Makes the file where it is missing, readable by the gateway's user only.
  init(_ path: String) throws(AuditSinkFault) {
    let descriptor = Foundation.open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw AuditSinkFault("\(path) cannot be opened: \(String(cString: strerror(errno)))") }
    var status = stat()
    fstat(descriptor, &status)
    self.descriptor = descriptor
    self.path = path
    isRegular = status.st_mode & S_IFMT == S_IFREG
    size = Int(status.st_size)
  }

  func close() { _ = Foundation.close(descriptor) }

  /// Attack on ourselves: the gateway was killed, or the disk was full, in the middle of a line. What was begun is sent
  /// again, so it goes.
  /// - Returns: the size afterwards.
  func endWithWholeLine() throws(AuditSinkFault) -> Int {
    guard isRegular else { return 0 }
    var end = size
    var block = [UInt8](repeating: 0, count: 4096)
    while end > 0 {
      let start = max(0, end - block.count)
      let count = pread(descriptor, &block, end - start, off_t(start))
      guard count == end - start else { throw fault("read") }
      if let last = block[..<count].lastIndex(of: UInt8(ascii: "\n")) {
        end = start + last + 1
        break
      }
      end = start
    }
    if end < size { cut(to: end) }
    return end
  }

  func write(_ bytes: [UInt8]) throws(AuditSinkFault) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else { throw fault("written") }
      rest = rest.dropFirst(written)
    }
  }

  func sync() throws(AuditSinkFault) {
    // Devices cannot be synchronised, and need not be.
    guard !isRegular || fdatasync(descriptor) == 0 else { throw fault("written") }
  }

  func cut(to size: Int) { if isRegular { _ = ftruncate(descriptor, off_t(size)) } }

  private func fault(_ what: String) -> AuditSinkFault {
    AuditSinkFault("\(path) cannot be \(what): \(String(cString: strerror(errno)))")
  }
}

import Foundation
import MoongateCore

/// `file { … }`: writes one event per line and syncs it to disk.
///
/// The file is opened for each batch, so that log rotation needs no signal.
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
      // Remove the partial batch: it is sent again, and a partial line would damage the next one.
      file.cut(to: size)
      throw error
    }
  }

  /// Renames `audit.log` to `audit.log.1`, that file to `audit.log.2`, and so on; the oldest is removed.
  private func rotate() throws(AuditSinkFault) {
    for number in stride(from: settings.keep, through: 1, by: -1) {
      let from = number == 1 ? settings.path : "\(settings.path).\(number - 1)"
      guard rename(from, "\(settings.path).\(number)") != 0, errno != ENOENT else { continue }
      throw AuditSinkFault("\(from) cannot be renamed: \(String(cString: strerror(errno)))")
    }
  }
}

/// A file opened for appending lines.
private struct OpenFile {
  private let descriptor: Int32
  private let path: String
  let size: Int
  /// False for a device or a pipe, whose end cannot be read.
  let isRegular: Bool

  /// Creates the file if it is missing, readable only by the gateway's user.
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

  /// Removes a partial last line, left by a killed process or a full disk. Its event is sent again.
  /// - Returns: the new size.
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
    guard DescriptorIO.writeAll(bytes, to: descriptor) else { throw fault("written") }
  }

  func sync() throws(AuditSinkFault) {
    // Devices cannot be synced and need not be.
    guard !isRegular || fdatasync(descriptor) == 0 else { throw fault("written") }
  }

  func cut(to size: Int) { if isRegular { _ = ftruncate(descriptor, off_t(size)) } }

  private func fault(_ what: String) -> AuditSinkFault {
    AuditSinkFault("\(path) cannot be \(what): \(String(cString: strerror(errno)))")
  }
}

import Foundation

/// Reads and writes of file descriptors that continue after a signal and after a part.
///
/// After a failure, `errno` says why.
package enum DescriptorIO {
  /// The size of the parts of `readAll`, in bytes.
  private static let part = 65_536

  /// Writes all bytes, if possible by one call.
  /// - Returns: false if it failed. Some of the bytes may be written.
  package static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    pass(bytes) { Foundation.write(descriptor, $0.baseAddress, $0.count) }
  }

  /// Sends all bytes on a connected stream socket. Raises no SIGPIPE if the other end is closed.
  /// - Returns: false if it failed. Some of the bytes may be sent.
  package static func sendAll(_ bytes: [UInt8], to socket: Int32) -> Bool {
    pass(bytes) { Foundation.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
  }

  private static func pass(_ bytes: [UInt8], _ call: (UnsafeRawBufferPointer) -> Int) -> Bool {
    bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let count = call(UnsafeRawBufferPointer(rebasing: rest))
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }
  }

  /// Reads to the end, or up to a number of bytes.
  /// - Returns: nil if it failed.
  package static func readAll(of descriptor: Int32, most: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < most {
      guard let next = readSome(of: descriptor, most: min(part, most - bytes.count)) else { return nil }
      if next.isEmpty { break }
      bytes += next
    }
    return bytes
  }

  /// Reads by one call.
  /// - Returns: no bytes at the end; nil if it failed.
  package static func readSome(of descriptor: Int32, most: Int) -> [UInt8]? {
    var hasFailed = false
    let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
      var got = Foundation.read(descriptor, buffer.baseAddress, most)
      while got < 0, errno == EINTR { got = Foundation.read(descriptor, buffer.baseAddress, most) }
      hasFailed = got < 0
      count = max(0, got)
    }
    return hasFailed ? nil : bytes
  }

  /// Syncs the folder of a file, so that its name there survives a power failure, where the file system can do that.
  package static func syncFolder(of path: String) {
    let folder = path.parentFolder
    let descriptor = open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}

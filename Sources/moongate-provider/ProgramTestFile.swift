import Foundation
import MoongateConformance
import MoongateSDK
import Synchronization

/// A file to which a tested program appends its messages, in place of a real outlet.
final class ProgramTestFile: Sendable {
  private let path: String
  private let read = Mutex(0)

  /// - Parameter path: in an existing folder; the file need not exist.
  init(path: String) { self.path = path }

  /// Sets the behavior. For `fails`, a folder takes the place of the file. A file cannot hang.
  func setServiceBehavior(_ behavior: ServiceBehavior) {
    let manager = FileManager.default
    let aside = path + ".aside"
    if behavior == .fails {
      if manager.fileExists(atPath: path) { try? manager.moveItem(atPath: path, toPath: aside) }
      try? manager.createDirectory(atPath: path, withIntermediateDirectories: false)
    } else {
      var isFolder: ObjCBool = false
      if manager.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
        try? manager.removeItem(atPath: path)
      }
      if manager.fileExists(atPath: aside) { try? manager.moveItem(atPath: aside, toPath: path) }
    }
  }

  /// The messages since the last call, one per line.
  func taken() -> [WebRequest] {
    read.withLock { read in
      guard let data = FileManager.default.contents(atPath: path), data.count > read else { return [] }
      let new = String(decoding: data[read...], as: UTF8.self)
      read = data.count
      return new.split(separator: "\n").map { WebRequest(method: "POST", url: "file:", body: Array($0.utf8)) }
    }
  }
}

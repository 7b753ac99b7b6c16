import Foundation
import MoongateConformance
import MoongateSDK
import Synchronization

/// A file in place of what a tried program sends by: what is appended to it was sent.
final class ProgramTestFile: Sendable {
  private let path: String
  private let read = Mutex(0)

  /// - Parameter path: in a folder that is there; the file need not be.
  init(path: String) { self.path = path }

  /// Where it fails, there is a folder in its place. It cannot be made to wait.
  func meets(_ manner: SiteManner) {
    let manager = FileManager.default
    let aside = path + ".aside"
    if manner == .fails {
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

  /// What came since this was asked last: each line is one message.
  func taken() -> [WebRequest] {
    read.withLock { read in
      guard let data = FileManager.default.contents(atPath: path), data.count > read else { return [] }
      let new = String(decoding: data[read...], as: UTF8.self)
      read = data.count
      return new.split(separator: "\n").map { WebRequest(method: "POST", url: "file:", body: Array($0.utf8)) }
    }
  }
}

import Foundation

/// Lists of strings as the system's calls take them.
package enum CStrings {
  /// The strings as C wants them: with a null behind the last.
  package static func with<Result>(_ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result)
    -> Result
  {
    let pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return body([nil]) }
      return body(base)
    }
  }
}

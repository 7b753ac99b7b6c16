import Foundation

/// Conversion of string lists for system calls.
package enum CStrings {
  /// Passes the strings as a null-terminated array of C strings.
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

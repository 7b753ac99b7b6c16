/// A file of the folder's `pages/`: a template, words, a stylesheet or a picture that takes the place of ours, or adds
/// to them.
package struct PageFile: Sendable, Hashable {
  /// Its name in `pages/`, such as `login.mustache`.
  package let name: String
  package let bytes: [UInt8]

  package init(name: String, bytes: [UInt8]) {
    self.name = name
    self.bytes = bytes
  }

  /// As problems spell it.
  package var path: String { "pages/\(name)" }
}

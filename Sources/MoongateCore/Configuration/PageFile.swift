/// A file in the folder's `pages/`: a template, texts, a stylesheet or an image that replaces or extends ours.
package struct PageFile: Sendable, Hashable {
  /// The name in `pages/`, such as `login.mustache`.
  package let name: String
  package let bytes: [UInt8]

  package init(name: String, bytes: [UInt8]) {
    self.name = name
    self.bytes = bytes
  }

  /// The path in problem messages.
  package var path: String { "pages/\(name)" }
}

/// A file in the folder's `pages/`: a template, texts, a stylesheet or an image that replaces or extends ours.
package struct PageFile: Sendable, Hashable {
  /// The name in `pages/`, such as `login.mustache`, or `errors/403.mustache` in a folder of `error_pages`.
  package let name: String
  package let bytes: [UInt8]

  package init(name: String, bytes: [UInt8]) {
    self.name = name
    self.bytes = bytes
  }

  /// The folder below `pages/`; empty if it is in `pages/` itself.
  package var folder: String { name.contains("/") ? String(name.prefix { $0 != "/" }) : "" }

  /// The path in problem messages.
  package var path: String { "pages/\(name)" }
}

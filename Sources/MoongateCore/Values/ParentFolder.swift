extension String {
  /// The folder that contains the file at this path: `a/b` for `a/b/c`, `/` for `/a`, and an empty text for `a`.
  ///
  /// `NSString.deletingLastPathComponent` ends the process for a name of one character.
  package var parentFolder: String {
    let slash = UInt8(ascii: "/")
    var path = utf8[...]
    while path.count > 1, path.last == slash { path.removeLast() }
    guard let end = path.lastIndex(of: slash) else { return "" }
    path = path[..<end]
    while path.last == slash { path.removeLast() }
    return path.isEmpty ? "/" : String(decoding: path, as: UTF8.self)
  }
}

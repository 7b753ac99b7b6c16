import CQRCode

/// A text as a QR code in inline SVG. It loads nothing and contains no styles that the Content-Security-Policy would
/// refuse.
struct QRPicture {
  /// The SVG element.
  let svg: String

  /// - Parameter label: the description for screen readers, without markup.
  /// - Returns: nil if the text is empty or longer than a camera can read from a screen (1,024 bytes).
  init?(of text: String, label: String) {
    var modules = [UInt8](repeating: 0, count: Int(CQR_MOST_MODULES))
    let width = Int(cqr_encode(text, text.utf8.count, &modules))
    guard width > 0 else { return nil }
    // The symbol needs a margin of four light modules (ISO/IEC 18004, section 6.3.8). Many cameras cannot read it
    // otherwise.
    let margin = 4
    var path = ""
    for row in 0..<width {
      var column = 0
      while column < width {
        guard modules[row * width + column] == 1 else {
          column += 1
          continue
        }
        let start = column
        while column < width, modules[row * width + column] == 1 { column += 1 }
        path += "M\(start + margin) \(row + margin)h\(column - start)v1h-\(column - start)z"
      }
    }
    let size = width + 2 * margin
    // Always dark on light, because few cameras read inverted codes.
    svg =
      "<svg class=\"qr\" role=\"img\" aria-label=\"\(label.attributeEscaped)\" viewBox=\"0 0 \(size) \(size)\" shape-rendering=\"crispEdges\">"
      + "<path fill=\"#ffffff\" d=\"M0 0h\(size)v\(size)h-\(size)z\"/><path fill=\"#000000\" d=\"\(path)\"/></svg>"
  }
}

extension String {
  /// Escaped for a value in double quotes.
  fileprivate var attributeEscaped: String {
    replacing("&", with: "&amp;").replacing("\"", with: "&quot;").replacing("<", with: "&lt;").replacing(
      ">", with: "&gt;")
  }
}

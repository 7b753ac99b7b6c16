import Foundation

/// The operator's primary colour on the pages. Every pair of text and background colours has a contrast of at least
/// 4.5:1 (WCAG 2.2, 1.4.3), for any colour.
struct BrandColour {
  private let red, green, blue: Double

  private init(_ red: Double, _ green: Double, _ blue: Double) {
    (self.red, self.green, self.blue) = (red, green, blue)
  }

  /// - Parameter text: `#rrggbb`.
  init?(_ text: String) {
    guard text.utf8.count == 7, text.hasPrefix("#"), let value = UInt32(text.dropFirst(), radix: 16) else { return nil }
    self.init(Double(value >> 16 & 255) / 255, Double(value >> 8 & 255) / 255, Double(value & 255) / 255)
  }

  /// The custom properties that replace those of the stylesheet. Buttons have the exact colour, with white or dark
  /// text. Links and icons have the nearest shade that is readable on the page. The stylesheet derives tints, rings and
  /// shadows from them.
  var stylesheet: String {
    // More than 4.5:1, because links are also used on a tint, which is slightly darker than the page.
    let enough = 5.0
    let onWhite = darkened(until: { $0.contrast(with: Self.white) >= enough })
    let onDark = lightened(until: { $0.contrast(with: Self.darkSurface) >= enough })
    let tints = "--tint:color-mix(in srgb,var(--primary) var(--share),var(--background))"
    let emblem = "--secondary:var(--link);--emblem:var(--tint)"
    // A button with the colour of the page gets a border.
    let edges = [Self.white, Self.ink].map { contrast(with: $0) < 1.5 ? "var(--link)" : "transparent" }
    return """
      :root{--share:8%;--primary:\(hex);--on-primary:\(textColour.hex);--link:\(onWhite.hex);--edge:\(edges[0]);\(tints);\(emblem)}
      @media (prefers-color-scheme:dark){:root{--share:16%;--primary:\(hex);--on-primary:\(textColour.hex);--link:\(onDark.hex);--edge:\(edges[1]);\(tints);\(emblem)}}

      """
  }

  private static let white = Self(1, 1, 1)
  private static let black = Self(0, 0, 0)
  private static let ink = Self(0x1e / 255.0, 0x1e / 255.0, 0x1e / 255.0)
  private static let darkSurface = Self(0x2a / 255.0, 0x2a / 255.0, 0x2a / 255.0)

  /// The text colour on this colour: white if it is readable, else the page's ink, else black. White or black is always
  /// readable.
  private var textColour: Self {
    [Self.white, Self.ink].first { contrast(with: $0) >= 4.5 } ?? .black
  }

  private var hex: String {
    "#"
      + [red, green, blue].map { channel in
        let text = String(Int((channel * 255).rounded()), radix: 16)
        return text.count == 1 ? "0" + text : text
      }.joined()
  }

  /// WCAG 2.2, "relative luminance".
  private var luminance: Double {
    func linear(_ channel: Double) -> Double {
      guard channel > 0.04045 else { return channel / 12.92 }
      return pow((channel + 0.055) / 1.055, 2.4)
    }
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
  }

  private func contrast(with other: Self) -> Double {
    let (one, two) = (luminance, other.luminance)
    return (max(one, two) + 0.05) / (min(one, two) + 0.05)
  }

  /// - Parameter share: the share of the other colour.
  private func mixed(with other: Self, share: Double) -> Self {
    Self(
      red + (other.red - red) * share, green + (other.green - green) * share, blue + (other.blue - blue) * share)
  }

  private func darkened(until isEnough: (Self) -> Bool) -> Self { moved(to: Self(0, 0, 0), until: isEnough) }

  private func lightened(until isEnough: (Self) -> Bool) -> Self { moved(to: Self(1, 1, 1), until: isEnough) }

  private func moved(to end: Self, until isEnough: (Self) -> Bool) -> Self {
    for step in 0...20 {
      let candidate = mixed(with: end, share: Double(step) / 20)
      if isEnough(candidate) { return candidate }
    }
    return end
  }
}

import Foundation

/// An operator's main colour on our pages: every pair of colours that carries text keeps 4.5:1 (WCAG 2.2, 1.4.3), whatever was asked for.
struct BrandColour {
  private let red, green, blue: Double

  private init(_ red: Double, _ green: Double, _ blue: Double) { (self.red, self.green, self.blue) = (red, green, blue) }

  /// - Parameter text: `#rrggbb`.
  init?(_ text: String) {
    guard text.utf8.count == 7, text.hasPrefix("#"), let value = UInt32(text.dropFirst(), radix: 16) else { return nil }
    self.init(Double(value >> 16 & 255) / 255, Double(value >> 8 & 255) / 255, Double(value & 255) / 255)
  }

  /// The custom properties that take the place of the stylesheet's.
  var stylesheet: String {
    let white = Self(1, 1, 1)
    let button = darkened(until: { $0.contrast(with: white) >= 4.5 })
    let dark = Self(0x2a / 255.0, 0x2a / 255.0, 0x2a / 255.0)
    let light = lightened(until: { $0.contrast(with: dark) >= 4.5 })
    return """
      :root{--primary:\(button.hex);--link:\(button.hex);--tint:\(button.mixed(with: white, share: 0.94).hex)}
      @media (prefers-color-scheme:dark){:root{--primary:\(button.hex);--link:\(light.hex);--tint:\(button.mixed(with: dark, share: 0.6).hex)}}

      """
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

  /// - Parameter share: of the other colour.
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

/// A short name for a browser, from its User-Agent, by which its owner can recognise it.
struct DeviceName {
  let browser: String?
  let system: String?

  private static let browsers: KeyValuePairs<String, String> = [
    "Edg/": "Edge", "OPR/": "Opera", "SamsungBrowser/": "Samsung Internet", "Firefox/": "Firefox", "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome", "Safari/": "Safari", "curl/": "curl",
  ]
  private static let systems: KeyValuePairs<String, String> = [
    "iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows", "Mac OS X": "Mac",
    "CrOS": "ChromeOS", "Linux": "Linux",
  ]

  init(userAgent: String?) {
    let text = userAgent ?? ""
    browser = Self.browsers.first { text.contains($0.key) }?.value
    system = Self.systems.first { text.contains($0.key) }?.value
  }

  /// Whether it is a mobile device.
  var isPhone: Bool { system.map { ["iPhone", "iPad", "Android"].contains($0) } ?? false }

  func text(_ words: Words) -> String {
    if let browser, let system { return words.text("device_on", ["browser": browser, "system": system]) }
    return browser ?? system ?? words["unknown_device"]
  }
}

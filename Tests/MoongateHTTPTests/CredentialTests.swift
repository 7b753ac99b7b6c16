import HTTPTypes
import MoongateCore
import MoongateTesting
import NIOCore
import Testing

@testable import MoongateHTTP
@testable import MoongateProxy

/// The gateway's own calls and the data path find the same session, or none, for any input.
///
/// Attack: a request that is anonymous to one of them and authenticated to the other.
@Suite struct CredentialTests {
  private static let one = String(repeating: "A", count: 43)
  private static let two = String(repeating: "B", count: 43)
  private static let pieces: [String] = [
    "moongate", "__Host-moongate", "__Secure-moongate", "moongate-flow", "__Host-moongate-device", "Moongate",
    "__Host-moongate-framed", "__Secure-moongate-framed", "__Host-moongate-flow-framed",
    "=", "=", "=", ";", ";", "; ", " ", "\t", ",", "\"", one, one, one, two, "a=b", "a", "x", "%20", "\u{301}",
    "\u{fc}", "\u{feff}",
  ]
  private static let schemes = [
    "Bearer ", "bearer ", "BEARER   ", "Bearer\t", "Bearer \t", "Bearer", "Basic ", "Bearer  ", "", "\u{212a}earer ",
  ]

  private func settings(secure: Bool, shared: Bool) -> GatewaySettings {
    var settings = GatewaySettings.test()
    settings.publicURL = PublicURL(isSecure: secure, host: "auth.example.com", port: secure ? 443 : 80)
    settings.cookieDomain = shared ? "example.com" : nil
    return settings
  }

  /// What the data path finds in these header fields, and what the gateway's own calls find in the fields the data path
  /// passes on.
  /// - Parameter framed: whether the cookies of frames count.
  private func compare(
    _ lines: [(name: String, value: [UInt8])], _ settings: GatewaySettings, framed: Bool = false
  ) throws -> (
    ours: TokenHash?, isRefused: Bool
  )? {
    var input = ByteBuffer(string: "GET / HTTP/1.1\r\nHost: h\r\n")
    for line in lines { input.writeBytes(Array("\(line.name): ".utf8) + line.value + Array("\r\n".utf8)) }
    input.writeString("\r\n")
    var decoder = RequestDecoder()
    var spare: [HeadField] = []
    guard let head = try? decoder.next(&input, spare: &spare) else { return nil }
    let bytes = head.bytes.readableBytesUInt8Span
    var found = MoongateProxy.Credentials(
      head, bytes, cookieName: GatewayCookies.sessionName(settings),
      framedName: GatewayCookies.framedSessionName(settings))
    if framed { found.useFramedCookie(bytes) }
    let proxied = found.token.map { TokenHash(of: head.text($0).utf8) }
    var fields = HTTPFields()
    for field in head.fields where field.kind == .cookie || field.kind == .authorization {
      let name = try #require(HTTPField.Name(head.text(field.name)))
      fields.append(HTTPField(name: name, lenientValue: field.value.map { bytes[$0] }))
    }
    let text = lines.map { "\($0.name): \(String(decoding: $0.value, as: UTF8.self))" }.joined(separator: "\n")
      .debugDescription
    do {
      let own = try MoongateHTTP.Credentials(fields, gateway: settings, admitsFramed: framed)
      #expect(!found.isContradictory, "\(text)")
      #expect(own.session == proxied, "\(text)")
      #expect(own.holdsCookie == found.hasOurCookies, "\(text)")
    } catch {
      #expect(found.isContradictory, "\(text)")
    }
    return (proxied, found.isContradictory)
  }

  @Test(arguments: 0..<16 as Range<UInt64>) func proxyAndAPIReadTheSameCredentials(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let settings = settings(secure: seed & 1 == 0, shared: seed & 2 == 0)
    let framed = seed >= 8
    let name = GatewayCookies(settings, isFramed: framed).session
    var sessions = 0
    var refusals = 0
    for _ in 0..<4000 {
      var lines: [(name: String, value: [UInt8])] = []
      for _ in 0..<Int.random(in: 0...2, using: &generator) {
        var value = Bool.random(using: &generator) ? "\(name)=\(Self.one)" : ""
        for _ in 0..<Int.random(in: 0...6, using: &generator) {
          let piece = Self.pieces.randomElement(using: &generator) ?? ""
          value = Bool.random(using: &generator) ? value + piece : piece + value
        }
        var bytes = Array(value.utf8)
        if Int.random(in: 0..<8, using: &generator) == 0, !bytes.isEmpty {
          bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: .min ... .max, using: &generator)
        }
        lines.append(("Cookie", bytes))
      }
      for _ in 0..<Int.random(in: 0...5, using: &generator) / 3 {
        let token = [Self.one, Self.one, Self.two, "x", ""].randomElement(using: &generator) ?? ""
        lines.append(("Authorization", Array(((Self.schemes.randomElement(using: &generator) ?? "") + token).utf8)))
      }
      lines.shuffle(using: &generator)
      guard let result = try compare(lines, settings, framed: framed) else { continue }
      if result.ours != nil { sessions += 1 }
      if result.isRefused { refusals += 1 }
    }
    #expect(sessions > 100 && refusals > 20, "\(sessions) \(refusals)")
  }

  /// The data path finds the gateway's cookies by their first letter before it compares the names.
  @Test func theDataPathKnowsEveryName() {
    for name in GatewayCookies.allNames {
      let bytes = Array(name.description.utf8)
      let isOurs = GatewayCookieBytes.isOurs(bytes.span, bytes.indices)
      #expect(isOurs, "\(name)")
    }
  }

  /// The session cookie of a frame counts only where it is admitted, and only without the usual one.
  @Test func cookiesOfFramesHaveNoPriority() throws {
    let settings = settings(secure: true, shared: false)
    func session(_ cookie: String, framed: Bool) throws -> TokenHash? {
      try #require(try compare([("Cookie", Array(cookie.utf8))], settings, framed: framed)).ours
    }
    let (one, two) = (TokenHash(of: Self.one.utf8), TokenHash(of: Self.two.utf8))
    #expect(try session("__Host-moongate-framed=\(Self.one)", framed: true) == one)
    #expect(try session("__Host-moongate-framed=\(Self.one)", framed: false) == nil)
    #expect(try session("__Host-moongate-framed=\(Self.one); __Host-moongate=\(Self.two)", framed: true) == two)
    #expect(try session("__Host-moongate-framed=\(Self.one); __Host-moongate=x", framed: true) == nil)
    for name in ["__Secure-moongate-framed", "moongate-framed", "__Host-moongate-flow-framed"] {
      #expect(try session("\(name)=\(Self.one)", framed: true) == nil, "\(name)")
    }
    let twice = "__Host-moongate-framed=\(Self.one); __Host-moongate-framed=\(Self.one)"
    #expect(try session(twice, framed: true) == nil)
  }

  /// Exact results for inputs on which the two used to differ.
  @Test(
    arguments: [
      ("moongate; moongate=\(one)", nil, true), ("moongate =\(one)", nil, true), ("moongate", "Bearer \(one)", true),
      (nil, "Bearer\t\(one)", false),
      (nil, "Bearer \t\(one)", false), ("moongate=", "Bearer \(one)", nil), ("moongate=\(one)", "Bearer\t\(two)", true),
      ("=moongate=\(one)", nil, false),
    ] as [(String?, String?, Bool?)])
  func proxyAndAPIAgreeOnAmbiguousCredentials(_ cookie: String?, _ authorization: String?, _ isSession: Bool?) throws {
    var lines: [(name: String, value: [UInt8])] = []
    if let cookie { lines.append(("Cookie", Array(cookie.utf8))) }
    if let authorization { lines.append(("Authorization", Array(authorization.utf8))) }
    let result = try #require(try compare(lines, settings(secure: false, shared: false)))
    #expect(result.isRefused == (isSession == nil) && (result.ours != nil) == (isSession ?? false))
  }
}

/// A generator with a reproducible sequence (SplitMix64), so that a failure can be repeated.
private struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}

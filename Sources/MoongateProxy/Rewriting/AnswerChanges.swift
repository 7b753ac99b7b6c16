import MoongateCore
import NIOCore

/// Writes the fields of one response that a route changes: `response_headers`, and fields with addresses of the
/// service, which become addresses of the client.
///
/// Only what is certain to name the service is changed: a path that begins with `/`, or an address of the request's
/// host, of `host_header` or of an upstream. Everything else stays as it is, byte for byte.
struct AnswerChanges {
  /// The fields that are changed, with the names of those that contain addresses.
  enum Change: String {
    /// The route sets or removes it.
    case removed = "a field of response_headers"
    case location = "Location"
    case contentLocation = "Content-Location"
    /// `5; url=…` (HTML, section "Shared declarative refresh steps").
    case refresh = "Refresh"
    case cookie = "Set-Cookie"
    /// `frames` replaces its `frame-ancestors`.
    case policy = "Content-Security-Policy"
  }

  let rewriting: ServiceRewriting
  /// The host of the request, by which it was judged.
  let client: HostName
  /// Whether the client used https.
  let isSecure: Bool
  /// Called with the beginning of each path to which no path of the route corresponds.
  let reportOutside: (_ change: Change, _ path: String) -> Void

  /// - Returns: nil if the field is forwarded unchanged.
  func change(of field: HeadField, _ bytes: Span<UInt8>) -> Change? {
    if rewriting.replaces(bytes, field.name) { return .removed }
    if rewriting.decidesFrames, field.nameLength == 23,
      ByteClass.equal(bytes, field.name, "content-security-policy")
    {
      return .policy
    }
    guard rewriting.changesAddresses else { return nil }
    if field.kind == .setCookie { return .cookie }
    guard field.kind == .other else { return nil }
    switch field.nameLength {
    case 7 where ByteClass.equal(bytes, field.name, "refresh"): return .refresh
    case 8 where ByteClass.equal(bytes, field.name, "location"): return .location
    case 16 where ByteClass.equal(bytes, field.name, "content-location"): return .contentLocation
    default: return nil
    }
  }

  /// Writes the field as the client receives it.
  /// - Parameter line: the whole line of the field.
  func write(_ change: Change, of field: HeadField, _ line: Range<Int>, _ bytes: Span<UInt8>, to out: inout ByteBuffer)
  {
    switch change {
    case .removed: break
    case .policy: writePolicy(field.value, line, bytes, to: &out)
    case .cookie: writeCookie(field.value, line, bytes, to: &out)
    case .location, .contentLocation, .refresh:
      let address = change == .refresh ? Self.addressOfRefresh(bytes, field.value) : field.value
      guard let address else { return out.copy(bytes, line) }
      out.copy(bytes, line.lowerBound..<address.lowerBound)
      writeAddress(address, of: change, bytes, to: &out)
      out.copy(bytes, address.upperBound..<line.upperBound)
    }
  }

  private func writePolicy(_ value: Range<Int>, _ line: Range<Int>, _ bytes: Span<UInt8>, to out: inout ByteBuffer) {
    let start = out.writerIndex
    out.copy(bytes, line.lowerBound..<value.lowerBound)
    if FramePolicy.write(bytes, value, to: &out) {
      out.copy(bytes, value.upperBound..<line.upperBound)
    } else {
      out.moveWriterIndex(to: start)
    }
  }

  // MARK: addresses

  /// Whose host an address names.
  private enum Owner {
    /// That of the request, or none.
    case client
    case service
    case other
  }

  private func writeAddress(_ value: Range<Int>, of change: Change, _ bytes: Span<UInt8>, to out: inout ByteBuffer) {
    guard let address = AddressParts(bytes, value) else { return out.copy(bytes, value) }
    let owner = owner(of: address, bytes)
    guard owner != .other else { return out.copy(bytes, value) }
    let path = address.path
    let outward = rewriting.path.outward(bytes, path)
    guard outward != .outside else {
      report(change, path, bytes)
      return out.copy(bytes, value)
    }
    if owner == .client {
      out.copy(bytes, value.lowerBound..<path.lowerBound)
    } else {
      out.writeString(client.origin(isSecure: isSecure))
    }
    guard case .moved(let dropped) = outward else { return out.copy(bytes, path.lowerBound..<value.upperBound) }
    let rest = path.lowerBound + dropped..<path.upperBound
    out.writeBytes(rewriting.path.prefix)
    if path.isEmpty || rest.isEmpty && rewriting.path.prefix.isEmpty { out.writeStaticString("/") }
    // Attack: `/base//evil.example/` leads to the service, and without `/base` it would lead to another site. With a
    // dot segment, it is a path of this host (RFC 3986 section 4.2).
    if address.authority == nil, rewriting.path.prefix.isEmpty, Self.beginsLikeHost(bytes, rest) {
      out.writeStaticString("/.")
    }
    out.copy(bytes, rest.lowerBound..<value.upperBound)
  }

  private func owner(of address: AddressParts, _ bytes: Span<UInt8>) -> Owner {
    guard let authority = address.authority else { return .client }
    // Attack: `http://10.0.0.5:3000@evil.example/`. `HostName` refuses everything but a host and a port.
    guard let host = HostName(bytes.extracting(authority)) else { return .other }
    let isSecure = address.isSecure ?? self.isSecure
    if ServiceRewriting.isSame(host, isSecure, client, self.isSecure) { return .client }
    return rewriting.isOwn(host, isSecure: isSecure) ? .service : .other
  }

  /// Whether browsers read the path as `//host`: they treat `\` like `/`, and ignore tabs (WHATWG URL, section 4.4).
  private static func beginsLikeHost(_ bytes: Span<UInt8>, _ path: Range<Int>) -> Bool {
    let second = path.dropFirst().first { bytes[$0] != 0x09 }
    return second.map { bytes[$0] == UInt8(ascii: "/") || bytes[$0] == UInt8(ascii: "\\") } ?? false
  }

  private func report(_ change: Change, _ path: Range<Int>, _ bytes: Span<UInt8>) {
    reportOutside(change, String(decoding: path.prefix(100).map { bytes[$0] }, as: UTF8.self))
  }

  /// The address in a value of Refresh; nil if there is none.
  private static func addressOfRefresh(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Range<Int>? {
    var index = value.lowerBound
    let end = value.upperBound
    func skip(while isSkipped: (UInt8) -> Bool) { while index < end, isSkipped(bytes[index]) { index += 1 } }
    skip { ByteClass.isDigit($0) || $0 == UInt8(ascii: ".") }
    let afterTime = index
    skip(while: ByteClass.isSpace)
    if index < end, bytes[index] == UInt8(ascii: ";") || bytes[index] == UInt8(ascii: ",") {
      index += 1
    } else if index == afterTime {
      return nil
    }
    skip(while: ByteClass.isSpace)
    let plain = index
    if index + 3 <= end, ByteClass.equal(bytes, index..<index + 3, "url") {
      index += 3
      skip(while: ByteClass.isSpace)
      if index < end, bytes[index] == UInt8(ascii: "=") {
        index += 1
        skip(while: ByteClass.isSpace)
      } else {
        index = plain
      }
    }
    guard index < end else { return nil }
    let quote = bytes[index]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return index..<end }
    index += 1
    let start = index
    skip { $0 != quote }
    return start..<index
  }

  // MARK: cookies

  /// Changes Path, and removes a Domain that names the service: browsers would refuse the cookie, and without it the
  /// cookie is for the host of the request only.
  ///
  /// A cookie named `__Host-…` must have `Path=/` (RFC 6265bis section 4.1.3.2) and stays as it is.
  private func writeCookie(_ value: Range<Int>, _ line: Range<Int>, _ bytes: Span<UInt8>, to out: inout ByteBuffer) {
    guard !Self.isBoundToHost(bytes, value) else { return out.copy(bytes, line) }
    var written = line.lowerBound
    var start = Self.end(of: value.lowerBound, bytes, value)
    while start < value.upperBound {
      let end = Self.end(of: start + 1, bytes, value)
      let equals = (start + 1..<end).first { bytes[$0] == UInt8(ascii: "=") } ?? end
      let name = ByteClass.trimmed(bytes, start + 1..<equals)
      let content = equals < end ? ByteClass.trimmed(bytes, equals + 1..<end) : end..<end
      if ByteClass.equal(bytes, name, "path"), let moved = movedPath(content, bytes) {
        out.copy(bytes, written..<content.lowerBound)
        out.writeBytes(rewriting.path.prefix)
        if rewriting.path.prefix.isEmpty, moved.isEmpty { out.writeStaticString("/") }
        written = moved.lowerBound
      } else if ByteClass.equal(bytes, name, "domain"), namesService(content, bytes) {
        out.copy(bytes, written..<start)
        written = end
      }
      start = end
    }
    out.copy(bytes, written..<line.upperBound)
  }

  /// What follows the prefix in the Path of a cookie; nil if the Path stays as it is. `/` becomes the prefix without a
  /// slash, because `/wiki/` does not cover `/wiki` (RFC 6265 section 5.1.4).
  private func movedPath(_ path: Range<Int>, _ bytes: Span<UInt8>) -> Range<Int>? {
    guard !path.isEmpty, bytes[path.lowerBound] == UInt8(ascii: "/") else { return nil }
    switch rewriting.path.outward(bytes, path) {
    case .same: return nil
    case .moved(let dropped): return path.lowerBound + (path.count == 1 ? 1 : dropped)..<path.upperBound
    case .outside:
      if path.count > 1 { report(.cookie, path, bytes) }
      return nil
    }
  }

  private func namesService(_ domain: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
    let hasDot = !domain.isEmpty && bytes[domain.lowerBound] == UInt8(ascii: ".")
    guard let host = HostName(bytes.extracting(hasDot ? domain.dropFirst() : domain)) else { return false }
    return host.port == nil && host.name != client.name && rewriting.isOwn(host.name)
  }

  private static func isBoundToHost(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
    let prefix = 7
    return value.count >= prefix
      && ByteClass.equal(bytes, value.lowerBound..<value.lowerBound + prefix, "__host-")
  }

  /// The index of the next `;`, or the end of the value.
  private static func end(of start: Int, _ bytes: Span<UInt8>, _ value: Range<Int>) -> Int {
    var index = start
    while index < value.upperBound, bytes[index] != UInt8(ascii: ";") { index += 1 }
    return index
  }
}

/// The parts of an address in a response that can lead to the service: a path from the root, `//host/path`, or an
/// address of http or https (RFC 3986 section 4).
private struct AddressParts {
  /// nil without a scheme.
  private(set) var isSecure: Bool?
  /// nil without a host.
  private(set) var authority: Range<Int>?
  /// Empty, or beginning with `/`.
  private(set) var path: Range<Int>

  /// - Returns: nil for all other addresses, such as relative ones.
  init?(_ bytes: Span<UInt8>, _ value: Range<Int>) {
    func begins(_ text: StaticString) -> Bool {
      value.count >= text.utf8CodeUnitCount
        && ByteClass.equal(bytes, value.lowerBound..<value.lowerBound + text.utf8CodeUnitCount, text)
    }
    func end(from start: Int, _ stops: StaticString) -> Int {
      (start..<value.upperBound).first { index in
        (0..<stops.utf8CodeUnitCount).contains { stops.utf8Start[$0] == bytes[index] }
      } ?? value.upperBound
    }
    var start = value.lowerBound
    if begins("http://") {
      (isSecure, start) = (false, start + 7)
    } else if begins("https://") {
      (isSecure, start) = (true, start + 8)
    } else if begins("//") {
      start += 2
    } else if !begins("/") {
      return nil
    }
    if start > value.lowerBound {
      // Browsers end the host at a backslash too.
      let hostEnd = end(from: start, "/\\?#")
      authority = start..<hostEnd
      start = hostEnd
    }
    path = start..<end(from: start, "?#")
    guard path.isEmpty || bytes[start] == UInt8(ascii: "/") else { return nil }
  }
}

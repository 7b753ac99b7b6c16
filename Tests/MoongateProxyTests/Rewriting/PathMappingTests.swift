import MoongateCore
import Testing

@testable import MoongateProxy

/// Paths of requests and responses with `strip` and a path in `to`.
@Suite struct PathMappingTests {
  /// What is left of the path for the service.
  private func rest(_ path: String, strip: String, base: String = "") -> String? {
    let bytes = Array(path.utf8)
    guard let cut = PathMapping(PathRewrite(strip: strip, base: base)).cut(bytes.span) else { return nil }
    return String(decoding: bytes[cut...], as: UTF8.self)
  }

  private func outward(_ path: String, strip: String = "", base: String = "") -> String {
    let bytes = Array(path.utf8)
    let mapping = PathMapping(PathRewrite(strip: strip, base: base))
    switch mapping.outward(bytes.span, bytes.indices) {
    case .same: return path
    case .outside: return "outside"
    case .moved(let dropped): return String(decoding: mapping.prefix + bytes[dropped...], as: UTF8.self)
    }
  }

  @Test(arguments: [
    ("/wiki", ""), ("/wiki/", "/"), ("/wiki/x/y", "/x/y"), ("/wiki/wiki/x", "/wiki/x"), ("/wiki/%2525", "/%2525"),
    ("/wiki/a;b=c/%20", "/a;b=c/%20"), ("/wiki/x/", "/x/"), ("/wiki/x%2fy", "/x%2fy"),
  ])
  func prefixIsRemovedByteForByte(_ path: String, _ left: String) {
    #expect(rest(path, strip: "/wiki") == left)
    #expect(rest(path, strip: "/wiki", base: "/base") == left)
  }

  /// Attack: the route matches these paths, because they are decoded for matching. The service gets the same rest as by
  /// the plain spelling.
  @Test(arguments: [
    "/%77iki/x", "/wik%69/x", "/%57iki/x", "/wiki;a=b/x", "/wiki;/x", "/wiki%3Ba/x", "/wiki%3b/x", "/%77%69%6b%69;;/x",
  ])
  func encodedPrefixIsRemoved(_ path: String) {
    #expect(rest(path, strip: path.contains("%57") ? "/Wiki" : "/wiki") == "/x")
  }

  @Test func prefixOfSeveralSegmentsIsRemoved() {
    for path in ["/a/b/x", "/a;p/b/x", "/%61/%62;p=%2F/x", "/a%3Bq/b%3Bq/x"] {
      #expect(rest(path, strip: "/a/b") == "/x", "\(path)")
    }
    for path in ["/a", "/a/", "/a%2Fb/x", "/a;/b;x", "/ab/x", "/a/bc"] {
      #expect(rest(path, strip: "/a/b") == (path == "/a;/b;x" ? "" : nil), "\(path)")
    }
  }

  /// Attack: prefix confusion and double encoding. None of these is below `/wiki`, whatever a service would make of it.
  @Test(arguments: [
    "/wikiadmin", "/wikiadmin/x", "/wik", "/", "", "/WIKI/x", "/wiki%2Fx", "/wiki%5Cx", "/wiki%", "/wiki%2",
    "/%2577iki/x", "/wiki%253B/x", "/x/wiki", "/wiki.", "/%77ikix", "//wiki/x", "/wiki%00/x", "/%2Fwiki/x",
  ])
  func otherPathsHaveNoRest(_ path: String) {
    #expect(rest(path, strip: "/wiki") == nil)
    #expect(rest(path, strip: "/wiki", base: "/base") == nil)
  }

  /// Attack: a rest that a service reads as the address of another host. Below a path in `to` it is none.
  @Test func restThatBeginsWithTwoSlashesIsRefused() {
    for path in ["/wiki//evil.example/x", "/wiki//", "/%77iki//evil.example", "/wiki;a//evil.example"] {
      #expect(rest(path, strip: "/wiki") == nil, "\(path)")
      #expect(rest(path, strip: "/wiki", base: "/base")?.hasPrefix("//") == true, "\(path)")
    }
    // Attack: a service that decodes the path first.
    for rest in ["/%2Fevil.example/x", "/%2f%2fevil.example", "/%5Cevil.example", "/%5c"] {
      for path in ["/wiki\(rest)", "/%77iki;a\(rest)"] {
        #expect(self.rest(path, strip: "/wiki") == nil, "\(path)")
        #expect(self.rest(path, strip: "/wiki", base: "/base") == rest, "\(path)")
      }
    }
    #expect(rest("/wiki/%252Fx", strip: "/wiki") == "/%252Fx", "decoded once, this is text")
    #expect(rest("/wiki/x//y", strip: "/wiki") == "/x//y")
    #expect(rest("//x", strip: "") == "//x", "paths of routes without strip stay as they are")
  }

  @Test func namesThatNeedEncodingAreEncoded() {
    let mapping = PathMapping(PathRewrite(strip: "/a b/ü", base: ""))
    #expect(String(decoding: mapping.prefix, as: UTF8.self) == "/a%20b/%C3%BC")
    #expect(rest("/a%20b/%C3%BC/x", strip: "/a b/ü") == "/x")
    #expect(rest("/a%20b/%c3%bc/x", strip: "/a b/ü") == "/x")
    #expect(outward("/x", strip: "/a b") == "/a%20b/x")
    #expect(String(decoding: PathMapping(PathRewrite(strip: "/a\nb%")).prefix, as: UTF8.self) == "/a%0Ab%25")
  }

  @Test(arguments: [
    ("/x", "/wiki", "", "/wiki/x"), ("/", "/wiki", "", "/wiki/"), ("/wikix", "/wiki", "", "/wiki/wikix"),
    // The service knows the prefix.
    ("/wiki", "/wiki", "", "/wiki"), ("/wiki/x", "/wiki", "", "/wiki/x"),
    ("/base/x", "", "/base", "/x"), ("/base/", "", "/base", "/"), ("/base", "", "/base", ""),
    ("/basement/x", "", "/base", "outside"), ("/other", "", "/base", "outside"), ("/", "", "/base", "outside"),
    ("/base/x", "/wiki", "/base", "/wiki/x"), ("/base", "/wiki", "/base", "/wiki"),
    ("/base/wiki/x", "/wiki", "/base", "/wiki/wiki/x"), ("/wiki/x", "/wiki", "/base", "/wiki/x"),
    ("/x", "/wiki", "/base", "outside"), ("/base%2Fx", "/wiki", "/base", "outside"),
    ("/a/a/x", "/a", "/a", "/a/a/x"), ("/a/x", "/a/b", "/a", "/a/b/x"), ("/x", "", "", "/x"),
    ("", "/wiki", "", "/wiki"),
  ])
  func pathsOfResponsesGetTheirPrefixBack(_ path: String, _ strip: String, _ base: String, _ expected: String) {
    #expect(outward(path, strip: strip, base: base) == expected)
  }

  /// A link that the service gives for a path leads to that path again.
  @Test func bothDirectionsAreInverse() {
    for (strip, base) in [("/wiki", ""), ("/wiki", "/base"), ("", "/base"), ("/a/b", "/c/d"), ("/x", "/x")] {
      for path in ["/", "/x/y", "/x/", "/y;z", "/q%2520"] {
        let seen = base + path
        let link = outward(seen, strip: strip, base: base)
        // A path that begins with `strip` counts as one of clients.
        if base.isEmpty, path.hasPrefix("\(strip)/") { continue }
        #expect(rest(link, strip: strip, base: base).map { base + $0 } == seen, "\(strip) \(base) \(path)")
      }
    }
  }
}

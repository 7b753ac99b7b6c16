import HTTPTypes
import Hummingbird
import MoongateDelivery
import MoongateSDK
import NIOCore
import Testing

@Suite("Requests to other sites") struct SiteClientTests {
  @Test("have the provider's method, headers and body, and return the whole response") func exchange() async throws {
    let site = TestSite()
    try await site.run { _ in
      Response(
        status: .created, headers: [.contentType: "text/plain"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: "yes")))
    } _: { address in
      let web = SiteClient()
      let answer = try await web.send(
        WebRequest(
          method: "POST", url: address + "/token?a=b", headers: [("X-One", "1"), ("X-One", "2")],
          body: Array("grant=code".utf8)))
      #expect(answer.status == 201)
      #expect(answer.header("content-type") == "text/plain")
      #expect(String(decoding: answer.body, as: UTF8.self) == "yes")
      let asked = try #require(site.questions.first)
      #expect(asked.method == "POST")
      #expect(asked.path == "/token?a=b")
      #expect(asked.body == "grant=code")
      #expect(asked.headers[values: HTTPField.Name("X-One") ?? .accept] == ["1", "2"])
      await web.end()
    }
  }

  @Test("do not follow redirects") func redirect() async throws {
    let site = TestSite()
    try await site.run { _ in
      Response(status: .found, headers: [.location: "/elsewhere"])
    } _: { address in
      let answer = try await SiteClient().send(WebRequest(url: address + "/start"))
      #expect(answer.status == 302)
      #expect(answer.header("location") == "/elsewhere")
      #expect(site.questions.map(\.path) == ["/start"])
    }
  }

  @Test("limit the size of the response") func bounded() async throws {
    try await TestSite().run { question in
      let count = question.path == "/most" ? 1000 : 1001
      return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(repeating: 120, count: count)))
    } _: { address in
      let web = SiteClient(largest: 1000)
      let most = try await web.send(WebRequest(url: address + "/most"))
      #expect(most.body.count == 1000)
      await #expect(throws: WebFault(reason: "\(address): the answer is larger than 1000 bytes")) {
        try await web.send(WebRequest(url: address + "/more?secret=1"))
      }
    }
  }

  @Test("time out, also in the middle of a response", arguments: ["/never", "/begins"])
  func silent(path: String) async throws {
    let (stream, end) = AsyncStream.makeStream(of: ByteBuffer.self)
    end.yield(ByteBuffer(string: "begins"))
    try await TestSite().run { question in
      if question.path == "/never" { for await _ in stream.dropFirst() {} }
      return Response(status: .ok, body: ResponseBody(asyncSequence: stream))
    } _: { address in
      let web = SiteClient(timeLimit: .milliseconds(200))
      let clock = ContinuousClock()
      let begin = clock.now
      let fault = await #expect(throws: WebFault.self) { try await web.send(WebRequest(url: address + path)) }
      #expect(clock.now - begin < .seconds(3))
      #expect(fault?.reason.contains("?") == false)
      end.finish()
    }
  }

  @Test(
    "fail without revealing the path if the site is unreachable or its URL is invalid",
    arguments: ["http://127.0.0.1:1/p?secret", "file:///etc/passwd", "x", "https://"])
  func absent(url: String) async throws {
    let fault = await #expect(throws: WebFault.self) { try await SiteClient().send(WebRequest(url: url)) }
    #expect(fault?.reason.contains("secret") == false)
    #expect(fault?.reason.contains("passwd") == false)
  }

  @Test("report the system's reason if the connection is refused", arguments: ["127.0.0.1", "localhost"])
  func refusedConnection(host: String) async {
    await #expect(throws: WebFault(reason: "http://\(host):1: Connection refused")) {
      try await SiteClient().send(WebRequest(url: "http://\(host):1/p?secret"))
    }
  }

  @Test("report a host name without an address") func unknownHost() async {
    await #expect(throws: WebFault(reason: "http://host.invalid: the host name has no address")) {
      try await SiteClient().send(WebRequest(url: "http://host.invalid/p?secret"))
    }
  }

  @Test("report a failed TLS handshake") func plainTextSite() async throws {
    try await TestSite().run { _ in
      Response(status: .ok)
    } _: { address in
      let secure = address.replacing("http://", with: "https://")
      await #expect(throws: WebFault(reason: "\(secure): the TLS handshake failed (WRONG_VERSION_NUMBER)")) {
        try await SiteClient().send(WebRequest(url: secure + "/p?secret"))
      }
    }
  }

  @Test("refuse header values with line ends") func injection() async throws {
    let site = TestSite()
    try await site.run { _ in
      Response(status: .ok)
    } _: { address in
      await #expect(throws: WebFault.self) {
        try await SiteClient().send(WebRequest(url: address, headers: [("X-One", "1\r\nX-Two: 2")]))
      }
      #expect(site.questions.isEmpty)
    }
  }
}

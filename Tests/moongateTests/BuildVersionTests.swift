import MoongateCore
import Testing

@testable import MoongateGateway

/// The output of `moongate --version` and the health command.
@Suite struct BuildVersionTests {
  @Test func everyLibraryReportsItsVersion() {
    let libraries = BuildVersion.libraries
    #expect(
      libraries.map(\.name) == [
        "BoringSSL", "Lua", "SQLite", "OpenSSL", "libpq", "libcurl", "zlib", "libqrencode", "libphonenumber",
        "libargon2", "libcrypt", "libldap", "libmaxminddb",
      ])
    for library in libraries.dropFirst() {
      #expect(library.version.first?.isNumber ?? false, "\(library.name): \(library.version)")
    }
  }

  @Test func allPlacesHaveTheSameVersion() {
    let lines = BuildVersion.text.split(separator: "\n")
    #expect(lines.first == "moongate \(BuildVersion.number)")
    let sample = BuildMetrics.family.samples.first
    #expect(sample?.labels.map(\.1) == [BuildVersion.number, BuildVersion.commit, BuildVersion.swift])
  }

  @Test func aListenerOnAllAddressesIsAskedByLoopback() throws {
    #expect(try #require(ListenAddress("0.0.0.0:9901")).forClients.description == "127.0.0.1:9901")
    #expect(try #require(ListenAddress("[::]:9901")).forClients.description == "[::1]:9901")
    #expect(try #require(ListenAddress("10.0.0.7:9901")).forClients.description == "10.0.0.7:9901")
  }
}

import MoongateCore
import Testing

@Suite struct ClientAddressTests {
  @Test(
    arguments: [
      ([192, 0, 2, 7], "192.0.2.7"),
      ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7], "192.0.2.7"),
      ([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "2001:db8::1"),
      ([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1], "2001:db8:0:1:1:1:1:1"),
      ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "::"),
      ([0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], "1:0:0:1::1"),
    ] as [([UInt8], String)]) func descriptionIsCanonical(bytes: [UInt8], text: String)
  { #expect(ClientAddress(bytes: bytes)?.description == text) }

  @Test func ipv6AddressesOfANetworkShareOneCountingKey() throws {
    let first = try #require(ClientAddress(bytes: [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]))
    let second = try #require(ClientAddress(bytes: [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9]))
    let neighbour = try #require(ClientAddress(bytes: [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 2, 1, 1, 1, 1, 1, 1, 1, 1]))
    #expect(first.countingKey == second.countingKey)
    #expect(first.countingKey != neighbour.countingKey)
    #expect(first.networkKey == neighbour.networkKey)
  }

  @Test(arguments: [(8, true), (16, true), (17, false), (32, false)]) func addressIsMatchedByThePrefixOfTheBlock(
    prefix: Int, isIn: Bool
  ) throws {
    let address = try #require(ClientAddress(bytes: [10, 1, 128, 1]))
    let network = try #require(ClientAddress(bytes: [10, 1, 0, 0])).masked(to: prefix)
    #expect(address.isIn(AddressBlock(network: network, prefix: prefix)) == isIn)
  }
}

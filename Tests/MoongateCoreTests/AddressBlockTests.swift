import MoongateCore
import Testing

@Suite struct AddressBlockTests {
  /// Clients never have IPv4-mapped addresses, so such a block would match none.
  @Test(arguments: [
    ("::ffff:10.0.0.0/104", "10.0.0.0/8"), ("::ffff:10.1.2.3", "10.1.2.3/32"), ("::ffff:0:0/96", "0.0.0.0/0"),
    ("2001:db8::/32", "2001:db8::/32"), ("::ffff:0:0/95", "::fffe:0:0/95"), ("10.0.0.0/8", "10.0.0.0/8"),
  ])
  func mappedBlocksAreThoseOfIPv4(text: String, block: String) { #expect(AddressBlock(text)?.description == block) }

  @Test func aMappedBlockMatches() throws {
    let client = try #require(
      ClientAddress(bytes: [UInt8](repeating: 0, count: 10) + [0xff, 0xff, 10, 1, 2, 3]))
    #expect(client.isIn(try #require(AddressBlock("::ffff:10.0.0.0/104"))))
  }

  /// Attack: a trusted block that contains machines of others, which could then claim any address.
  @Test(arguments: [
    ("0.0.0.0/0", true), ("64.0.0.0/2", true), ("10.0.0.0/7", true), ("10.0.0.0/8", false), ("192.0.2.7", false),
    ("::/0", true), ("2000::/3", true), ("2001:db8::/31", true), ("2001:db8::/32", false), ("::1", false),
    ("fc00::/7", false), ("fd00::/8", false), ("fc00::/6", true),
  ])
  func blockThatIsLargerThanAPrivateNetworkIsWide(text: String, isWide: Bool) throws {
    #expect(try #require(AddressBlock(text)).isWide == isWide)
  }
}

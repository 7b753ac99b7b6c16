import Foundation
import MoongateCore

/// A small database of addresses in MaxMind's format (https://maxmind.github.io/MaxMind-DB/).
package struct GeoFile {
  private enum Leaf {
    case empty
    case node(Int)
    /// The place of the data in the data section.
    case data(Int)
  }

  private var nodes: [(left: Leaf, right: Leaf)] = [(.empty, .empty)]
  private var data: [UInt8] = []
  private let builtAt: Timestamp
  private let type: String

  /// - Parameters:
  ///   - networks: the place of each network, such as `10.0.0.0/8`. A later network replaces a part of an earlier one.
  ///   - builtAt: when the database was made.
  package init(_ networks: KeyValuePairs<String, ClientPlace>, builtAt: Timestamp, type: String = "Test") {
    self.builtAt = builtAt
    self.type = type
    for (text, place) in networks {
      guard let block = AddressBlock(text) else { continue }
      let start = data.count
      data += Self.encoded(place)
      // An IPv4 address is in ::/96.
      let bytes = block.network.count == 4 ? [UInt8](repeating: 0, count: 12) + block.network : block.network
      let length = block.prefix + (block.network.count == 4 ? 96 : 0)
      var path: [Bool] = []
      for bit in 0..<length { path.append(bytes[bit / 8] & (0x80 >> UInt8(bit % 8)) != 0) }
      put(.data(start), at: path)
    }
  }

  private mutating func put(_ leaf: Leaf, at path: [Bool]) {
    var place = 0
    for (depth, isRight) in path.enumerated() {
      if depth == path.count - 1 {
        set(leaf, isRight, in: place)
      } else if case .node(let next) = isRight ? nodes[place].right : nodes[place].left {
        place = next
      } else {
        let inner = isRight ? nodes[place].right : nodes[place].left
        nodes.append((inner, inner))
        set(.node(nodes.count - 1), isRight, in: place)
        place = nodes.count - 1
      }
    }
  }

  private mutating func set(_ leaf: Leaf, _ isRight: Bool, in place: Int) {
    if isRight { nodes[place].right = leaf } else { nodes[place].left = leaf }
  }

  /// The contents of the file.
  package var bytes: [UInt8] {
    let tree = nodes.flatMap { [$0.left, $0.right] }.flatMap { leaf in
      let value =
        switch leaf {
        case .empty: nodes.count
        case .node(let number): number
        case .data(let start): nodes.count + 16 + start
        }
      return [UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }
    let seconds = UInt64(max(0, builtAt.seconds))
    let members: [(String, [UInt8])] = [
      ("node_count", Self.number(UInt64(nodes.count), kind: 6)), ("record_size", Self.number(24, kind: 5)),
      ("ip_version", Self.number(6, kind: 5)), ("database_type", Self.text(type)),
      ("languages", [1, 4] + Self.text("en")), ("binary_format_major_version", Self.number(2, kind: 5)),
      ("binary_format_minor_version", Self.number(0, kind: 5)), ("build_epoch", Self.number(seconds, kind: 9)),
      ("description", Self.map(1) + Self.text("en") + Self.text(type)),
    ]
    let metadata = Self.map(members.count) + members.flatMap { Self.text($0.0) + $0.1 }
    let marker: [UInt8] = [0xab, 0xcd, 0xef] + Array("MaxMind.com".utf8)
    return tree + [UInt8](repeating: 0, count: 16) + data + marker + metadata
  }

  /// Writes the file in place.
  package func write(to path: String) throws { try Data(bytes).write(to: URL(filePath: path)) }

  private static func encoded(_ place: ClientPlace) -> [UInt8] {
    var members: [[UInt8]] = []
    if let country = place.country { members.append(text("country") + map(1) + text("iso_code") + text(country)) }
    if let asn = place.asn { members.append(text("autonomous_system_number") + number(UInt64(asn), kind: 6)) }
    return map(members.count) + members.flatMap(\.self)
  }

  private static func map(_ count: Int) -> [UInt8] { [UInt8(7 << 5 | count)] }

  /// A text of at most 284 bytes.
  private static func text(_ text: String) -> [UInt8] {
    let count = text.utf8.count
    return (count < 29 ? [UInt8(2 << 5 | count)] : [UInt8(2 << 5 | 29), UInt8(count - 29)]) + Array(text.utf8)
  }

  /// - Parameter kind: the number of the type: 5 for 16 bits, 6 for 32, 9 for 64.
  private static func number(_ number: UInt64, kind: UInt8) -> [UInt8] {
    let digits = withUnsafeBytes(of: number.bigEndian) { Array($0.drop { $0 == 0 }) }
    let size = UInt8(digits.count)
    return (kind < 8 ? [kind << 5 | size] : [size, kind - 7]) + digits
  }
}

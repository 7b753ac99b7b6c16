/// Header fields that list values with weights, such as `Accept-Language` (RFC 9110, section 12.4.2).
enum WeightedList {
  /// The maximum number of values that are read.
  private static let most = 20

  /// The values in lower case with their weights, in the order of the lines. A value without a weight has 1.
  static func read(_ lines: [String]) -> [(value: String, weight: Double)] {
    let items = lines.flatMap { $0.split(separator: ",").prefix(most) }.prefix(most)
    return items.map { item -> (value: String, weight: Double) in
      let parts = item.split(separator: ";", omittingEmptySubsequences: false).map {
        $0.filter { $0 != " " && $0 != "\t" }.lowercased()
      }
      let weight = parts.dropFirst().compactMap { $0.hasPrefix("q=") ? Double($0.dropFirst(2)) : nil }.first ?? 1
      return (parts.first ?? "", weight)
    }
  }
}

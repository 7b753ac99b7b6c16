import MoongateSDK

/// A setting in messages.
enum WireSetting: Encodable, Equatable {
  case text(String)
  case number(Double)
  case flag(Bool)
  case list([String])
  case table([String: String])

  init(_ value: SettingValue) {
    self =
      switch value {
      case .text(let text): .text(text)
      case .number(let number): .number(number)
      case .flag(let flag): .flag(flag)
      case .list(let list): .list(list)
      case .table(let table): .table(table)
      }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let text): try container.encode(text)
    case .number(let number):
      // Write 3 instead of 3.0, because some languages distinguish them.
      if let whole = Int64(exactly: number) { try container.encode(whole) } else { try container.encode(number) }
    case .flag(let flag): try container.encode(flag)
    case .list(let list): try container.encode(list)
    case .table(let table): try container.encode(table)
    }
  }
}

import MoongateCore

extension Varying {
  /// The lowest value that the function can choose.
  var lowest: Value {
    switch self {
    case .fixed(let value): value
    case .varying(let lowest, _, _): lowest
    }
  }

  /// The highest value that the function can choose.
  var highest: Value {
    switch self {
    case .fixed(let value): value
    case .varying(_, let highest, _): highest
    }
  }
}

import MoongateCore

/// A generation that passes its calls on to another one, which it observes or whose providers it replaces.
protocol WrappingGeneration: PolicyGeneration {
  /// The generation that answers the calls.
  var base: any PolicyGeneration { get }
}

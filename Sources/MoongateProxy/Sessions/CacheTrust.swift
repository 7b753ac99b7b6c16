import Synchronization

/// Whether event loops may believe what they remember of sessions and tokens, besides asking the store.
///
/// Attack: during an upgrade two processes serve from one store. A person signs out on a connection to one of them, and
/// a copied token is used on a connection to the other one before that has heard of it. So nothing that is remembered
/// is believed while both serve.
final class CacheTrust: Sendable {
  private let isWithdrawn = Atomic<Bool>(false)

  var isGiven: Bool { !isWithdrawn.load(ordering: .acquiring) }

  func set(_ isGiven: Bool) { isWithdrawn.store(!isGiven, ordering: .releasing) }
}

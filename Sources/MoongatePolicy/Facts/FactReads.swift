import MoongateSDK

/// The facts that a call of a function has read. Functions are pure, so their result depends only on these.
struct FactReads {
  /// Plain facts and sets, by slot.
  var slots: Set<FactSlot> = []
  /// The members that were read by name, by set.
  var members: [FactSlot: Set<String>] = [:]
  /// The sets whose members were listed.
  var listed: Set<FactSlot> = []
  /// Declared facts, by path.
  var declared: Set<String> = []
  /// Whether counters of limits were read.
  var readsLimits = false
  /// What the functions of groups have read, if the call read `f.account.groups`.
  var ofGroups: [FactReads] = []
}

import MoongateSDK

/// Which facts one call of a function has read. What a function answers depends on these alone: functions are pure.
struct FactReads {
  /// Plain facts and sets, by their slots.
  var slots: Set<FactSlot> = []
  /// Members that were asked for by name, by set.
  var members: [FactSlot: Set<String>] = [:]
  /// Sets whose members were listed.
  var listed: Set<FactSlot> = []
  /// Facts that providers declare, by their paths.
  var declared: Set<String> = []
  /// Whether counters of limits were read.
  var readsLimits = false
}

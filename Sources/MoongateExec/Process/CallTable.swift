import MoongateSDK

/// The calls of a program that somebody waits for.
struct CallTable {
  /// How many calls that were given up are remembered, to tell a late answer from one that was never asked for.
  private static let remembered = 2_048

  private var all: [Int: (call: ProgramInbox.Call, isSent: Bool)] = [:]
  /// In the order of their deadlines, which is mostly that of their coming: all but maintenance have the same time.
  private var timeline: [(id: Int, deadline: ContinuousClock.Instant)] = []
  private var head = 0
  private var givenUp: Set<Int> = []
  private var givenUpOrder: [Int] = []

  var isEmpty: Bool { all.isEmpty }

  mutating func add(_ call: ProgramInbox.Call, isSent: Bool) {
    all[call.id] = (call, isSent)
    let place = timeline[head...].lastIndex { $0.deadline <= call.deadline }.map { $0 + 1 } ?? head
    timeline.insert((call.id, call.deadline), at: place)
  }

  func contains(_ id: Int) -> Bool { all[id] != nil }

  mutating func remove(_ id: Int) -> ProgramInbox.Call? { all.removeValue(forKey: id)?.call }

  /// Attack: an answer to a call that has not been asked yet, guessed from the number of the one before.
  mutating func removeSent(_ id: Int) -> ProgramInbox.Call? { all[id]?.isSent ?? false ? remove(id) : nil }

  /// What is granted to the program in a call that it was told of and has not answered.
  /// - Parameter id: nil: of the oldest, which is the one that a program works on that takes its calls one after the
  ///   other.
  func tools(of id: Int?) -> StepTools? {
    if let id { return all[id].flatMap { $0.isSent ? $0.call.tools : nil } }
    return all.values.lazy.filter { $0.isSent && $0.call.tools != nil }.min { $0.call.id < $1.call.id }?.call.tools
  }

  /// - Returns: those that were not sent before, in the order of their coming.
  mutating func markAllSent() -> [ProgramInbox.Call] {
    let waiting = all.values.filter { !$0.isSent }.map(\.call).sorted { $0.id < $1.id }
    for call in waiting { all[call.id]?.isSent = true }
    return waiting
  }

  var nextDeadline: ContinuousClock.Instant? {
    mutating get {
      while head < timeline.count, all[timeline[head].id] == nil { head += 1 }
      if head > 1_024 {
        timeline.removeFirst(head)
        head = 0
      }
      return head < timeline.count ? timeline[head].deadline : nil
    }
  }

  /// Those whose time is over.
  mutating func takeLate(at now: ContinuousClock.Instant) -> [ProgramInbox.Call] {
    var late: [ProgramInbox.Call] = []
    while let deadline = nextDeadline, deadline <= now {
      if let call = remove(timeline[head].id) { late.append(call) }
    }
    return late
  }

  mutating func failAll(_ fault: ProgramFault) {
    for (call, _) in all.values { call.answer.resume(throwing: fault) }
    all = [:]
  }

  /// Those that the program was told of.
  mutating func failSent(_ fault: ProgramFault) { fail(fault) { $0.isSent } }

  /// Those that cannot wait so long.
  mutating func failThose(before moment: ContinuousClock.Instant, _ fault: ProgramFault) {
    fail(fault) { $0.call.deadline <= moment }
  }

  private mutating func fail(_ fault: ProgramFault, _ isMeant: ((call: ProgramInbox.Call, isSent: Bool)) -> Bool) {
    for entry in all.values where isMeant(entry) {
      entry.call.answer.resume(throwing: fault)
      all[entry.call.id] = nil
    }
  }

  mutating func remember(_ id: Int) {
    givenUp.insert(id)
    givenUpOrder.append(id)
    guard givenUpOrder.count > Self.remembered * 2 else { return }
    for old in givenUpOrder.prefix(Self.remembered) { givenUp.remove(old) }
    givenUpOrder.removeFirst(Self.remembered)
  }

  /// - Returns: whether the call was given up, and not answered since.
  mutating func forget(_ id: Int) -> Bool { givenUp.remove(id) != nil }
}

/// What is still to be written to a program.
struct SendQueue {
  private var lines: [(id: Int?, line: [UInt8])] = []
  private var head = 0
  /// Of the first line that are written already.
  private var written = 0
  private(set) var bytes = 0

  var isEmpty: Bool { head == lines.count }

  mutating func add(_ line: [UInt8], of id: Int?) {
    lines.append((id, line))
    bytes += line.count
  }

  /// Takes a call's line out that nothing of was written yet.
  /// - Returns: whether it was there.
  mutating func drop(_ id: Int) -> Bool {
    guard let index = lines[head...].firstIndex(where: { $0.id == id }), index > head || written == 0 else {
      return false
    }
    bytes -= lines[index].line.count
    lines.remove(at: index)
    return true
  }

  /// Writes as much as the program takes now.
  /// - Parameter isWanted: asked of each line before its first byte.
  mutating func flush(to child: ChildProcess, isWanted: (Int?) -> Bool) {
    while head < lines.count {
      let (id, line) = lines[head]
      if written == 0, !isWanted(id) {
        next()
        continue
      }
      // It reads no more: its end is seen elsewhere.
      guard child.isInputOpen, let count = child.write(line[written...]) else {
        clear()
        return
      }
      if count == 0 { return }
      written += count
      if written == line.count { next() }
    }
    clear()
  }

  private mutating func next() {
    bytes -= lines[head].line.count
    head += 1
    written = 0
    if head > 1_024 {
      lines.removeFirst(head)
      head = 0
    }
  }

  private mutating func clear() {
    lines.removeAll(keepingCapacity: true)
    head = 0
    written = 0
    bytes = 0
  }
}

import MoongateSDK

/// The open calls of a program.
struct CallTable {
  /// The number of abandoned calls that are remembered, to distinguish a late answer from an unexpected one.
  private static let remembered = 2_048

  private var all: [Int: (call: ProgramInbox.Call, isSent: Bool)] = [:]
  /// Ordered by deadline. This is mostly the order of arrival, because all calls except maintenance have the same
  /// timeout.
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

  /// Attack: a program answers a call that it has not received yet, with a guessed id.
  mutating func removeSent(_ id: Int) -> ProgramInbox.Call? { all[id]?.isSent ?? false ? remove(id) : nil }

  /// The tools that are granted to the program in a call that it has received and not answered.
  /// - Parameter id: nil for the oldest call, which is the current one of a program that handles calls in order.
  func tools(of id: Int?) -> StepTools? {
    if let id { return all[id].flatMap { $0.isSent ? $0.call.tools : nil } }
    return all.values.lazy.filter { $0.isSent && $0.call.tools != nil }.min { $0.call.id < $1.call.id }?.call.tools
  }

  /// - Returns: the calls that were not sent before, in order of arrival.
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

  /// Removes and returns the calls whose deadline has passed.
  mutating func takeExpired(at now: ContinuousClock.Instant) -> [ProgramInbox.Call] {
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

  /// Fails the calls that were sent to the program.
  mutating func failSent(_ fault: ProgramFault) { fail(fault) { $0.isSent } }

  /// Fails the calls whose deadline is at or before the time.
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

  /// - Returns: whether the call was abandoned and has not been answered since.
  mutating func forget(_ id: Int) -> Bool { givenUp.remove(id) != nil }
}

/// The output waiting to be written to a program.
struct SendQueue {
  private var lines: [(id: Int?, line: [UInt8])] = []
  private var head = 0
  /// The number of written bytes of the first line.
  private var written = 0
  private(set) var bytes = 0

  var isEmpty: Bool { head == lines.count }

  mutating func add(_ line: [UInt8], of id: Int?) {
    lines.append((id, line))
    bytes += line.count
  }

  /// Removes the line of a call if none of it has been written yet.
  /// - Returns: whether it was removed.
  mutating func drop(_ id: Int) -> Bool {
    guard let index = lines[head...].firstIndex(where: { $0.id == id }), index > head || written == 0 else {
      return false
    }
    bytes -= lines[index].line.count
    lines.remove(at: index)
    return true
  }

  /// Writes as much as the program's pipe accepts now.
  /// - Parameter isWanted: called for each line before its first byte; false drops the line.
  mutating func flush(to child: ChildProcess, isWanted: (Int?) -> Bool) {
    while head < lines.count {
      let (id, line) = lines[head]
      if written == 0, !isWanted(id) {
        next()
        continue
      }
      // The program has closed its input. Its exit is detected elsewhere.
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

import CLua
import MoongateCore

/// The callbacks of CLua for a running function. Must live as long as the evaluator, whose state holds a pointer to it.
final class LuaCallbacks {
  let box: FactReader
  private let zones = TimeZoneHours()

  init(declared: [DeclaredFact]) { box = FactReader(declared: declared) }

  /// The callbacks never throw or raise. They return a status, and C raises the error after they have returned.
  var callbacks: clua_callbacks {
    var callbacks = clua_callbacks()
    callbacks.context = Unmanaged.passUnretained(self).toOpaque()
    callbacks.fact = { context, slot, key, length, index, value in
      guard let context, let value else { return 1 }
      // Avoids reference counting, which would cost as much as reading the fact. The evaluator keeps the object alive.
      Unmanaged<LuaCallbacks>.fromOpaque(context)._withUnsafeGuaranteedRef { answers in
        let name = key.map { String(decoding: UnsafeRawBufferPointer(start: $0, count: length), as: UTF8.self) }
        answers.box.answer(slot, key: name, index: index, into: &value.pointee)
      }
      return 0
    }
    callbacks.hour = { context, seconds, zone, length, value in
      guard let context, let zone, let value else { return 1 }
      let answers = Unmanaged<LuaCallbacks>.fromOpaque(context).takeUnretainedValue()
      let name = String(decoding: UnsafeRawBufferPointer(start: zone, count: length), as: UTF8.self)
      switch answers.zones.hour(of: seconds, in: name) {
      case .success(let hour):
        value.pointee.kind = CLUA_INTEGER
        value.pointee.integer = Int64(hour)
        return 0
      case .failure(let unknown):
        answers.box.put(unknown.sentence, into: &value.pointee)
        return 1
      }
    }
    return callbacks
  }
}

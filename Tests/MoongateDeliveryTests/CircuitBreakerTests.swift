import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateDelivery

@Suite("The circuit breaker of a site") struct CircuitBreakerTests {
  let clock = ManualClock()

  @Test("opens after a number of consecutive failures") func opens() {
    var circuit = CircuitBreaker(most: 3, pause: .seconds(10))
    for _ in 0..<2 {
      #expect(circuit.admit(at: clock.now()) == .goes)
      circuit.failed(at: clock.now())
    }
    circuit.succeeded()
    for count in 1...3 {
      #expect(circuit.admit(at: clock.now()) == .goes)
      circuit.failed(at: clock.now())
      #expect(circuit.state == (count < 3 ? .closed(failures: count) : .open(until: clock.now() + .seconds(10))))
    }
    #expect(circuit.admit(at: clock.now()) == .refused(until: clock.now() + .seconds(10)))
  }

  @Test("allows one attempt after the pause, which closes or reopens it", arguments: [true, false]) func probe(
    isUp: Bool
  ) {
    var circuit = CircuitBreaker(most: 1, pause: .seconds(10))
    circuit.failed(at: clock.now())
    clock.advance(by: .milliseconds(9_999))
    #expect(circuit.admit(at: clock.now()) != .goes)
    clock.advance(by: .milliseconds(1))
    #expect(circuit.admit(at: clock.now()) == .goes)
    #expect(circuit.admit(at: clock.now()) == .refused(until: nil))
    if isUp { circuit.succeeded() } else { circuit.failed(at: clock.now()) }
    #expect(circuit.state == (isUp ? .closed(failures: 0) : .open(until: clock.now() + .seconds(10))))
  }

  @Test("is not extended by failures of earlier messages") func stragglers() {
    var circuit = CircuitBreaker(most: 1, pause: .seconds(10))
    circuit.failed(at: clock.now())
    let state = circuit.state
    clock.advance(by: .seconds(5))
    circuit.failed(at: clock.now())
    #expect(circuit.state == state)
  }
}

@Suite("The send queue of a site") struct SendQueueTests {
  let clock = ManualClock()

  @Test("bounds running and waiting messages") func bounds() {
    var queue = SendQueue<Int>(most: 2, longest: 2)
    #expect((1...5).map { queue.enter($0, at: clock.now()) } == [.goes, .goes, .waits, .waits, .full])
    #expect(queue.leave(at: clock.now()).next == 3)
    #expect(queue.enter(6, at: clock.now()) == .waits)
    #expect(queue.leave(at: clock.now()).next == 4)
    #expect(queue.leave(at: clock.now()).next == 6)
    #expect(queue.leave(at: clock.now()).next == nil)
    #expect(queue.leave(at: clock.now()).next == nil)
    #expect(queue.atWork == 0)
    #expect(queue.enter(7, at: clock.now()) == .goes)
  }

  @Test("drops messages that waited too long and starts the next") func late() {
    var queue = SendQueue<Int>(most: 1, timeLimit: .seconds(3))
    _ = queue.enter(0, at: clock.now())
    _ = queue.enter(1, at: clock.now())
    clock.advance(by: .seconds(2))
    _ = queue.enter(2, at: clock.now())
    clock.advance(by: .seconds(1))
    let turn = queue.leave(at: clock.now())
    #expect(turn.next == 2)
    #expect(turn.late == [1])
    #expect(queue.waiting == 0)
  }
}

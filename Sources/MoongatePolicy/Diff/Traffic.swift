import Foundation
import MoongateCore
import MoongateSDK

/// A sequence of user acts without their answers, which can be replayed against any configuration.
package struct Traffic: Sendable {
  /// An act of a user.
  package struct Act: Sendable {
    /// What the user does.
    package enum Kind: String, Sendable {
      /// Requests a code.
      case send
      /// Enters the right code or secret.
      case right
      /// Enters a wrong one.
      case wrong
    }

    package let at: Timestamp
    package let person: Int
    package let address: ClientAddress
    package let kind: Kind
  }

  /// In chronological order.
  package let acts: [Act]
  package let people: Int
  /// Users without an account.
  package let unregistered: Set<Int>

  /// Generates a week of traffic: users who sign in once a day and sometimes mistype, an attacker who guesses codes of
  /// the first user, and one who floods users with codes.
  package init(seed: UInt64, people: Int = 60, days: Int = 7) {
    let random = SeededRandom(seed: seed)
    let number = { (below: Int) in Int(random.uniform(below: UInt32(below))) }
    var acts: [Act] = []
    let address = { (first: UInt8, number: Int) in
      ClientAddress(bytes: [first, UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)])
        ?? .unspecified
    }
    for day in 0..<days {
      for person in 0..<people {
        var at = ManualClock.start + .seconds(day * 86_400 + number(80_000))
        let home = address(100, number(20) == 0 ? 10_000 + number(10_000) : person)
        acts.append(Act(at: at, person: person, address: home, kind: .send))
        // One in ten users mistypes, and one in three of those again, and so on.
        var slips = number(10) == 0 ? 1 : 0
        while slips > 0, slips < 9, number(3) == 0 { slips += 1 }
        for _ in 0..<slips {
          at = at + .seconds(5 + number(30))
          acts.append(Act(at: at, person: person, address: home, kind: .wrong))
        }
        acts.append(Act(at: at + .seconds(5 + number(60)), person: person, address: home, kind: .right))
      }
      for hour in 0..<24 {
        let at = ManualClock.start + .seconds(day * 86_400 + hour * 3_600 + number(3_000))
        acts.append(Act(at: at, person: 0, address: address(10, hour), kind: .send))
        for guess in 0..<6 {
          acts.append(Act(at: at + .seconds(1 + guess), person: 0, address: address(10, hour + guess), kind: .wrong))
        }
        for _ in 0..<8 {
          acts.append(Act(at: at + .seconds(number(600)), person: number(people), address: address(11, 0), kind: .send))
        }
      }
    }
    self.acts = acts.sorted { $0.at < $1.at }
    self.people = people
    unregistered = []
  }

  /// Reads recorded events in the format of `GET /events`, as a JSON array or one event per line.
  /// - Parameter provider: the provider whose steps are read.
  /// - Throws: `TrafficProblem` if the data has another format.
  package init(recorded data: Data, of provider: ProviderDescriptor) throws(TrafficProblem) {
    let wrong = Set(["invalid_code"] + provider.outcomes.filter(\.isFailure).map(\.reason.rawValue))
    let provider = provider.name
    var people: [String: Int] = [:]
    var unregistered: Set<Int> = []
    var acts: [Act] = []
    for (at, event) in try Self.events(in: data, wrong) where event.provider ?? provider.rawValue == provider.rawValue {
      // A keyed hash identifies a user as well as the identifier itself.
      guard let kind = event.act(wrong), let identifier = event.identifier ?? event.account else { continue }
      let person = people[identifier] ?? people.count
      let isUnknown = [RefusalCode.accountNotFound, .registrationClosed, .invitationRequired].contains {
        $0.name == event.code
      }
      if isUnknown, people[identifier] == nil { unregistered.insert(person) }
      people[identifier] = person
      acts.append(
        Act(
          at: at, person: person, address: event.address.flatMap { IPAddressText.parse($0.utf8) } ?? .unspecified,
          kind: kind))
    }
    self.acts = acts
    self.people = people.count
    self.unregistered = unregistered
  }

  private struct Event: Decodable {
    let at: String?
    let kind: String?
    let code: String?
    let provider: String?
    let identifier: String?
    /// Used if no identifier was recorded, as for the PIN of a signed-in account.
    let account: String?
    let address: String?
    let detail: [String: String]?

    private static let exact = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    /// The act of the user that the event records.
    /// - Parameter wrong: the error codes of wrong answers.
    func act(_ wrong: Set<String>) -> Act.Kind? {
      switch (kind, code, detail?["act"]) {
      case ("code_sent", _, _), ("refused", "resend_too_soon", _), ("refused", "send_limit", _), ("refused", _, "send"),
        ("refused", _, "begin"):
        .send
      case ("code_verified", _, _): .right
      case ("refused", "too_many_attempts", _): .wrong
      case ("refused", let code?, _) where wrong.contains(code): .wrong
      // The answer was refused without being checked. Most answers are right.
      case ("refused", _, "submit"): .right
      default: nil
      }
    }

    /// The order of acts with the same time.
    func rank(_ wrong: Set<String>) -> Int {
      switch act(wrong) {
      case .send: 0
      case .right: 2
      default: 1
      }
    }

    var moment: Timestamp? {
      guard let at, let date = (try? Date(at, strategy: Self.exact)) ?? (try? Date(at, strategy: .iso8601)) else {
        return nil
      }
      return Timestamp(milliseconds: Int64((date.timeIntervalSince1970 * 1000).rounded()))
    }
  }

  /// The events in chronological order. Events without a time are left out.
  private static func events(in data: Data, _ wrong: Set<String>) throws(TrafficProblem) -> [(
    at: Timestamp, event: Event
  )] {
    let decoder = JSONDecoder()
    var events: [Event] = []
    if let array = try? decoder.decode([Event].self, from: data) {
      // The admin listener returns the newest event first, and several events may have the same time.
      events = array.reversed()
    } else {
      for (number, line) in data.split(separator: UInt8(ascii: "\n")).enumerated() {
        guard let event = try? decoder.decode(Event.self, from: Data(line)) else {
          throw TrafficProblem(line: number + 1)
        }
        events.append(event)
      }
    }
    // Refusals are written after the store was updated. At the same time, sending a code comes first, and the right
    // answer comes last.
    return events.enumerated().compactMap { place, event in event.moment.map { (at: $0, place: place, event: event) } }
      .sorted { ($0.at, $0.event.rank(wrong), $0.place) < ($1.at, $1.event.rank(wrong), $1.place) }.map {
        ($0.at, $0.event)
      }
  }
}

/// The line of a log that cannot be read.
package struct TrafficProblem: Error, Sendable {
  package let line: Int
}

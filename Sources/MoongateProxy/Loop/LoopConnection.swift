import MoongateCore
import NIOCore

/// A client connection as its event loop sees it.
protocol LoopConnection: AnyObject {
  /// The index in the event loop's list; -1 if it is in none. Only `ProxyLoop` sets it.
  var placeInLoop: Int { get set }

  /// Called several times a second: ends what has exceeded its time.
  func checkTime(_ now: NIODeadline)
  /// Sessions have ended or changed.
  func sessionsChanged(_ changes: SessionChanges)
}

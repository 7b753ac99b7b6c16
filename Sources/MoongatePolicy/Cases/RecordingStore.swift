import MoongateCore
import MoongateSDK

/// A store that records which limits are charged and which refuse.
struct RecordingStore: ForwardingStore {
  let base: any Store
  let record: CoverageRecord

  func store(for call: String) -> any Store { base }

  func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    let result = try await base.reserve(request)
    switch result {
    case .reserved: record.charged(request.limits)
    case .refused(let refusal): if let limit = refusal.limit { record.refused(limit) }
    case .filledByPending, .barred, .flowChanged: break
    }
    return result
  }

  func apply(_ changes: [Change], reading query: LedgerQuery?, at now: Timestamp) async throws(StoreFault)
    -> ApplyResult
  {
    let result = try await base.apply(changes, reading: query, at: now)
    if case .applied(let locks, _) = result { for lock in locks { record.refused(lock.limit) } }
    return result
  }
}

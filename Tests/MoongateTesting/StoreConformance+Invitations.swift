import MoongateCore
import MoongateSDK
import Testing

// Invitations.

extension StoreConformance {
  static let invitations: [StoreConformance] = [
    StoreConformance("an invitation is found by its code, listed by its id, and revoked") { bench async throws in
      let ops = try GroupName(test: "ops")
      let named = bench.invitation("in_2", for: bench.email(), groups: [ops])
      let open = bench.invitation("in_1")
      for invitation in [named, open] {
        #expect(try await bench.apply(.putInvitation(invitation)) == .applied(locks: []))
      }
      let found = try await bench.store.invitation(named.code)
      #expect(found == named)
      #expect(found?.identifier?.hasSameDetails(as: bench.email()) ?? false)
      #expect(try await bench.store.invitation(TokenHash(of: "another".utf8)) == nil)
      #expect(try await bench.store.invitations(after: nil, limit: 1, at: bench.now) == [open])
      #expect(try await bench.store.invitations(after: "in_1", limit: 9, at: bench.now) == [named])
      #expect(try await bench.apply(.endInvitation("in_1")) == .applied(locks: []))
      #expect(try await bench.store.invitation(open.code)?.ended == .revoked)
      #expect(try await bench.store.invitations(after: nil, limit: 9, at: bench.now) == [named])
      #expect(try await bench.apply(.endInvitation("in_1")) == .conflict(.invitationGone))
      #expect(try await bench.apply(.useInvitation(open.code)) == .conflict(.invitationGone))
    },
    // Attack: one invitation creates several accounts, because many flows complete with it at the same moment.
    StoreConformance("an invitation is used once, together with the account, by one of many concurrent requests") {
      bench async throws in
      let ops = try GroupName(test: "ops")
      let invitation = bench.invitation("in_1", groups: [ops])
      try await bench.apply(.putInvitation(invitation))
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for number in 10..<30 {
          let account = bench.account("ac_\(number)", verified: [bench.phone("+9199999999\(number)")])
          group.addTask {
            try await bench.apply(
              .useInvitation(invitation.code), .createAccount(account),
              .setGroupMembership(account: account.id, ops, true))
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.filter { $0 == .applied(locks: []) }.count == 1)
      #expect(results.filter { $0 == .conflict(.invitationGone) }.count == 19)
      let accounts = try await bench.store.accounts(after: nil, limit: 100)
      #expect(accounts.count == 1 && accounts.first?.groups == [ops])
      #expect(try await bench.store.invitation(invitation.code)?.ended == .used)
      #expect(try await bench.store.invitations(after: nil, limit: 9, at: bench.now).isEmpty)
      #expect(try await bench.apply(.endInvitation("in_1")) == .conflict(.invitationGone))
    },
    StoreConformance("an invitation stays if the account cannot be created") { bench async throws in
      let invitation = bench.invitation("in_1")
      try await bench.apply(
        .putInvitation(invitation), .createAccount(bench.account("ac_1", verified: [bench.phone()])))
      let again = bench.account("ac_2", verified: [bench.phone()])
      #expect(
        try await bench.apply(.useInvitation(invitation.code), .createAccount(again)) == .conflict(.identifierTaken))
      #expect(try await bench.store.invitation(invitation.code) == invitation)
    },
    StoreConformance("an invitation that has ended names nobody, and no group") { bench async throws in
      for (id, ended) in [("in_1", InvitationProblem.used), ("in_2", .revoked)] {
        let invitation = bench.invitation(id, for: bench.email(), groups: [try GroupName(test: "ops")])
        try await bench.apply(.putInvitation(invitation))
        try await bench.apply(ended == .used ? .useInvitation(invitation.code) : .endInvitation(id))
        var expected = bench.invitation(id)
        expected.ended = ended
        #expect(try await bench.store.invitation(invitation.code) == expected)
      }
    },
    StoreConformance("an expired invitation cannot be used, and is deleted later") { bench async throws in
      let invitation = bench.invitation("in_1")
      try await bench.apply(.putInvitation(invitation))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.invitation(invitation.code) == invitation)
      bench.clock.advance(by: .seconds(60))
      let live = bench.invitation("in_2")
      try await bench.apply(.putInvitation(live))
      #expect(try await bench.store.invitations(after: nil, limit: 1, at: bench.now) == [live])
      #expect(try await bench.apply(.useInvitation(invitation.code)) == .conflict(.invitationGone))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.invitation(invitation.code)?.problem(at: bench.now) == .expired)
      bench.clock.advance(by: InvitationLifetime.remembered)
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.invitation(invitation.code) == nil)
    },
  ]
}

extension StoreBench {
  /// An invitation that expires in a minute.
  fileprivate func invitation(_ id: String, for identifier: Identifier? = nil, groups: [GroupName] = []) -> Invitation {
    Invitation(
      id: id, code: TokenHash(of: id.utf8), identifier: identifier, groups: groups, createdAt: now,
      expiresAt: now + .seconds(60))
  }
}

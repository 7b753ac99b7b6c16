extension Operation {
  /// Every call of the public listener. A test compares the list with the endpoints.
  static let api: [Operation] = [
    .createFlow, .viewFlow, .beginStep, .submitStep, .resendCode, .skipStep, .deleteFlow, .session, .signOut,
    .sessions, .endSession, .phoneFormat, .openAPI, .endSessions, .exportAccount, .deleteAccount, .devices,
    .removeDevice, .tokens, .createToken, .revokeToken, .connectedApps, .disconnectApp,
  ]

  /// Every call of the admin listener. A test compares the list with the endpoints.
  static let admin: [Operation] = [
    .healthz, .readyz, .metrics, .policy, .policyValues, .reloadPolicy, .upgrade, .beginShadow, .promoteShadow,
    .endShadow, .locks, .clearLock, .accounts, .account, .accountSessions, .accountDevices, .removeAccountDevice,
    .exportAccountByOperator, .lockAccount,
    .unlockAccount, .disableAccount, .resetFactor, .endAccountSessions, .deleteAccountByOperator, .groups,
    .groupMembers, .addGroupMember, .removeGroupMember, .invitations, .createInvitation, .revokeInvitation,
    .serviceTokens, .createServiceToken, .rotateServiceToken,
    .revokeServiceToken, .events, .decision, .outbox, .adminOpenAPI,
  ]
}

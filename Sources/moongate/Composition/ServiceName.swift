import ServiceLifecycle

extension ServiceGroupConfiguration.ServiceConfiguration {
  /// A service that the log calls by its type.
  ///
  /// Attack: a service fails, and the log gets the master key. By default, the library names a service by a dump of
  /// everything that it holds.
  init(byType service: any Service, onSuccess: TerminationBehavior = .cancelGroup) {
    self.init(
      service: service, successTerminationBehavior: onSuccess, serviceName: String(describing: type(of: service)))
  }
}

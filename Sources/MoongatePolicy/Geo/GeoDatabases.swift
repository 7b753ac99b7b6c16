import MoongateCore

/// The databases of `geo` in gateway.lua. A generation opens its own; `GeoReload` renews those of the active one.
package final class GeoDatabases: ClientPlaces {
  package let countries: GeoDatabase?
  package let systems: GeoDatabase?

  package init(countries: GeoDatabase?, systems: GeoDatabase?) {
    self.countries = countries
    self.systems = systems
  }

  package var all: [GeoDatabase] { [countries, systems].compactMap(\.self) }

  package func place(of address: ClientAddress) -> ClientPlace {
    ClientPlace(country: countries?.country(of: address), asn: systems?.system(of: address))
  }
}

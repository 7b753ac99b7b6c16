"""A device with passkeys: Chromium's virtual authenticator."""


class Device:
    def __init__(self, driver, **options):
        self.driver = driver
        self.name = driver.execute_cdp_cmd(
            "WebAuthn.addVirtualAuthenticator",
            {
                "options": {
                    "protocol": "ctap2",
                    "transport": "internal",
                    "hasResidentKey": True,
                    "hasUserVerification": True,
                    "isUserVerified": True,
                    "automaticPresenceSimulation": True,
                    **options,
                }
            },
        )["authenticatorId"]

    def knows_its_owner(self, does):
        self.driver.execute_cdp_cmd("WebAuthn.setUserVerified", {"authenticatorId": self.name, "isUserVerified": does})

    def waits_for_a_touch(self, does):
        self.driver.execute_cdp_cmd(
            "WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": self.name, "enabled": not does}
        )

    @property
    def credentials(self):
        return self.driver.execute_cdp_cmd("WebAuthn.getCredentials", {"authenticatorId": self.name})["credentials"]

    def is_lost(self):
        self.driver.execute_cdp_cmd("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": self.name})

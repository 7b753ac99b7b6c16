# The packages: `make deb`, `make tarball`, `make sbom`, and `make test-packages`, which tries them. Packaging/README.md says what is in them.
.PHONY: deb tarball sbom test-packages package-binary

PACKAGE_DIR := .build-package
PACKAGE_PRODUCTS := $(PACKAGE_DIR)/products
PACKAGE_BIN := $(PACKAGE_DIR)/release/moongate
PACKAGE_TOOLS := dpkg-dev binutils chrpath python3
PACKAGE_TEST_PACKAGES := lintian debootstrap man-db zsh fish curl python3-venv
# MOONGATE_BUILT=1 takes the binary that is in $(PACKAGE_BIN) as it is.
MOONGATE_BUILT ?=

export MOONGATE_VERSION := $(shell sed -nE 's/.*static let number = "(.*)"/\1/p' Sources/moongate/Composition/BuildVersion.swift)
# The date of everything in a package is that of the commit, so that the same commit makes the same bytes.
PACKAGE_DATE = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))

# A build folder of its own: the Swift runtime is linked in, and no path of this machine is.
package-binary: deps
	@$(call need,$(PACKAGE_TOOLS))
	[ -z "$(MOONGATE_BUILT)" ] || { test -x $(PACKAGE_BIN); exit 0; }
	commit=$$(git rev-parse HEAD); git diff --quiet HEAD -- Sources Plugins Package.swift || commit=$$commit-changed
	swift package --scratch-path $(PACKAGE_DIR) resolve
	export MOONGATE_COMMIT=$$commit
	export MOONGATE_SWIFT=$$(swift --version 2>/dev/null | sed -nE 's/.*Swift version ([0-9.]+).*/\1/p' | head -1)
	export MOONGATE_NIO_SSL=$$(python3 Packaging/tools/sbom.py --version-of swift-nio-ssl $(PACKAGE_DIR)/workspace-state.json)
	swift build -c release --product moongate --scratch-path $(PACKAGE_DIR) --static-swift-stdlib --explicit-target-dependency-import-check error \
	  -debug-info-format none -Xswiftc -file-prefix-map -Xswiftc $(CURDIR)=/usr/src/moongate -Xcc -ffile-prefix-map=$(CURDIR)=/usr/src/moongate

deb: package-binary
	@SOURCE_DATE_EPOCH=$(PACKAGE_DATE) Packaging/debian/build.sh $(PACKAGE_BIN) $(PACKAGE_PRODUCTS)

tarball: package-binary
	@SOURCE_DATE_EPOCH=$(PACKAGE_DATE) Packaging/tools/tarball.sh $(PACKAGE_BIN) $(PACKAGE_PRODUCTS)

# What is in the program, in the format of CycloneDX.
sbom: package-binary
	@mkdir -p $(PACKAGE_PRODUCTS)
	SOURCE_DATE_EPOCH=$(PACKAGE_DATE) python3 Packaging/tools/sbom.py $(PACKAGE_DIR) $(PACKAGE_BIN) $(PACKAGE_PRODUCTS)/moongate-$(MOONGATE_VERSION).cdx.json

# Minutes, as root, and with a mirror of Debian: installs the package into a fresh Debian, signs in there, upgrades, purges. No part of `make test`.
test-packages: deb tarball sbom $(VENV)/ready $(PACKAGE_DIR)/venv/ready
	@$(call need,$(PACKAGE_TEST_PACKAGES))
	$(PACKAGE_DIR)/venv/bin/python -m pytest Tests/Packages -v -p no:cacheprovider

$(PACKAGE_DIR)/venv/ready: Tests/Packages/requirements.txt
	@$(call need,python3-venv)
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

# The packages: `make deb`, `make tarball`, `make sbom`, and `make test-packages`. Packaging/README.md describes their
# contents.
.PHONY: deb tarball sbom test-packages package-binary

PACKAGE_DIR := .build-package
PACKAGE_PRODUCTS := $(PACKAGE_DIR)/products
PACKAGE_BIN := $(PACKAGE_DIR)/release/moongate
PACKAGE_TOOLS := dpkg-dev binutils chrpath python3
PACKAGE_TEST_PACKAGES := lintian debootstrap man-db zsh fish curl python3-venv
# MOONGATE_BUILT=1 uses the existing programs: $(PACKAGE_BIN), and moongate-provider beside it.
MOONGATE_BUILT ?=

export MOONGATE_VERSION := $(shell sed -nE 's/.*static let number = "(.*)"/\1/p' Sources/moongate/Composition/Process/BuildVersion.swift)
# All dates in a package are that of the commit, so that builds are reproducible.
PACKAGE_DATE = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))

# A separate build folder: the Swift runtime is linked statically, and no local path is embedded. The program exports no
# symbols, has packed relocations, and lacks functions that nothing calls, which makes it 12 MB smaller and saves 8 MB of
# memory.
PACKAGE_FLAGS := -Xswiftc -Xfrontend -Xswiftc -function-sections -Xcc -ffunction-sections -Xswiftc -use-ld=lld $(foreach option,--no-export-dynamic -z pack-relative-relocs,-Xlinker $(option))
package-binary: deps
	@$(call need,$(PACKAGE_TOOLS))
	[ -z "$(MOONGATE_BUILT)" ] || { test -x $(PACKAGE_BIN) -a -x $(PACKAGE_BIN)-provider; exit 0; }
	commit=$$(git rev-parse HEAD); git diff --quiet HEAD -- Sources Plugins Package.swift || commit=$$commit-changed
	swift package --scratch-path $(PACKAGE_DIR) resolve
	export MOONGATE_COMMIT=$$commit
	export MOONGATE_SWIFT=$$(swift --version 2>/dev/null | sed -nE 's/.*Swift version ([0-9.]+).*/\1/p' | head -1)
	export MOONGATE_NIO_SSL=$$(python3 Packaging/tools/sbom.py --version-of swift-nio-ssl $(PACKAGE_DIR)/workspace-state.json)
	for product in moongate moongate-provider; do
	  swift build -c release --product $$product --scratch-path $(PACKAGE_DIR) --static-swift-stdlib --explicit-target-dependency-import-check error \
	    -debug-info-format none -Xswiftc -file-prefix-map -Xswiftc $(CURDIR)=/usr/src/moongate -Xcc -ffile-prefix-map=$(CURDIR)=/usr/src/moongate \
	    $(PACKAGE_FLAGS)
	done

deb: package-binary
	@SOURCE_DATE_EPOCH=$(PACKAGE_DATE) Packaging/debian/build.sh $(PACKAGE_BIN) $(PACKAGE_PRODUCTS)

tarball: package-binary
	@SOURCE_DATE_EPOCH=$(PACKAGE_DATE) Packaging/tools/tarball.sh $(PACKAGE_BIN) $(PACKAGE_PRODUCTS)

# The software bill of materials in CycloneDX format.
sbom: package-binary
	@mkdir -p $(PACKAGE_PRODUCTS)
	SOURCE_DATE_EPOCH=$(PACKAGE_DATE) python3 Packaging/tools/sbom.py $(PACKAGE_DIR) $(PACKAGE_BIN) $(PACKAGE_PRODUCTS)/moongate-$(MOONGATE_VERSION).cdx.json

# Installs the package into a fresh Debian, signs in there, upgrades and purges. It takes minutes and needs root and a
# Debian mirror, so it is not part of `make test`.
test-packages: deb tarball sbom $(VENV)/ready $(PACKAGE_DIR)/venv/ready
	@$(call need,$(PACKAGE_TEST_PACKAGES))
	$(PACKAGE_DIR)/venv/bin/python -m pytest Tests/Packages -v -p no:cacheprovider

$(PACKAGE_DIR)/venv/ready: Tests/Packages/requirements.txt
	@$(call need,python3-venv)
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	touch $@
